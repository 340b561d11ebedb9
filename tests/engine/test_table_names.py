"""One meaning of a table's name in the client, with a real catalog beside a lake root."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidemark.client import connect
from tidemark.client.lake import Lake
from tidemark.errors import AmbiguousTableName, NotADeltaTable, TableNotFound
from tidemark.sql.identifiers import string_literal

pytestmark = pytest.mark.spark

TRACKED = "TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
PAGE = Path(__file__).parents[2] / "provider/docs/how-to/name-tables.md"


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[str]:
    name = f"names_{uuid.uuid4().hex[:8]}"
    spark.sql(f"CREATE DATABASE {name}")
    yield name
    spark.sql(f"DROP DATABASE {name} CASCADE")


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    opened = connect(spark, f"sqlite:///{tmp_path}/control.db", lake_root=str(tmp_path / "lake"))
    yield opened
    opened.close()


def make(spark: SparkSession, table: str) -> None:
    spark.sql(f"CREATE TABLE {table} (id INT) USING delta {TRACKED}")


def test_each_stream_says_which_knew_its_table_and_where_that_is(
    spark: SparkSession, lake: Lake, schema: str, tmp_path: Path
) -> None:
    root = tmp_path / "lake"
    make(spark, f"{schema}.managed")
    for path in ("shop/orders", "a/b/c"):
        make(spark, f"delta.`{root}/{path}`")
    asked = {
        f"spark_catalog.{schema}.managed": "catalog",
        f"{schema}.managed": "catalog",
        "shop.orders": "lake root",
        f"{root}/a/b/c": "path",
    }
    for number, (name, origin) in enumerate(asked.items()):
        made = lake.create_stream(f"s{number}", on=name)
        assert (made.table_name, made.origin) == (name, origin)
        assert made.path.startswith("file:///")
    with pytest.raises(TableNotFound, match=r"a\.b\.c"):
        lake.create_stream("never", on="a.b.c")


def test_a_name_that_is_two_tables_is_refused_and_each_has_a_name_of_its_own(
    spark: SparkSession, lake: Lake, schema: str, tmp_path: Path
) -> None:
    make(spark, f"{schema}.orders")
    below = tmp_path / "lake" / schema / "orders"
    make(spark, f"delta.`{below}`")
    with pytest.raises(AmbiguousTableName, match=r"two tables: file://.*/lake/.* below the lake root"):
        lake.create_stream("s", on=f"{schema}.orders")
    with pytest.raises(AmbiguousTableName):
        lake.sql(f"INSERT INTO {schema}.orders VALUES (1)")
    assert lake.create_stream("below", on=str(below)).path == f"file://{below}"
    assert lake.create_stream("in_catalog", on=f"spark_catalog.{schema}.orders").path != f"file://{below}"


def test_a_schema_that_is_below_the_lake_root_is_no_second_place(
    spark: SparkSession, lake: Lake, schema: str, tmp_path: Path
) -> None:
    spark.sql(f"CREATE DATABASE {schema}_in LOCATION '{tmp_path}/lake/{schema}_in'")
    try:
        make(spark, f"{schema}_in.orders")
        made = lake.create_stream("s", on=f"{schema}_in.orders")
        assert made.path == f"file://{tmp_path}/lake/{schema}_in/orders"
    finally:
        spark.sql(f"DROP DATABASE {schema}_in CASCADE")


def test_what_a_catalog_does_not_have_or_is_not_deltas_is_said(spark: SparkSession, lake: Lake, schema: str) -> None:
    spark.sql(f"CREATE TABLE {schema}.files (id INT) USING parquet")
    with pytest.raises(NotADeltaTable, match=r"parquet|Delta"):
        lake.create_stream("s", on=f"spark_catalog.{schema}.files")
    for name in (f"spark_catalog.{schema}.nothing", "nowhere.shop.orders"):
        with pytest.raises(TableNotFound, match="in Spark's catalog"):
            lake.create_stream("s", on=name)


def test_the_pages_sql_runs_as_it_is_in_a_plain_session(spark: SparkSession, tmp_path: Path) -> None:
    lake = connect(spark, f"sqlite:///{tmp_path}/control.db")
    try:
        blocks = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
        statements = [one.strip() for block in blocks for one in block.split(";") if one.strip()]
        assert len(statements) >= 5
        for statement in statements:
            lake.sql(statement)
        assert lake.describe_stream("order_changes").table_name == "spark_catalog.shop.orders_2026"
        assert sorted(row.id for row in spark.table("shop.mirror").collect()) == [1, 2]
    finally:
        lake.close()
        spark.sql("DROP DATABASE IF EXISTS shop CASCADE")


@pytest.mark.parametrize("text", ["", "a", "it's", 'a "b"', "back\\slash", "\\'", "new\nline", "ä %_"])
def test_a_text_is_the_same_after_sparks_parser(spark: SparkSession, text: str) -> None:
    assert spark.sql(f"SELECT {string_literal(text)}").collect() == [(text,)]
