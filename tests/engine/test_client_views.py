"""Streams on views as the client makes, shows and consumes them: an offset for each base table, moved together."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.table_templates import put_table
from tidemark.client import Offset, Stream, Timestamp, Version, connect
from tidemark.errors import InvalidArgument, SourceRecreated, StreamStale, ViewChanged, ViewRefused
from tidemark.model.streams import ACTION, IS_UPDATE

pytestmark = pytest.mark.spark

TRACKED = "TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
TABLES = {
    "orders": (
        f"CREATE TABLE {{t}} (id INT, customer INT, item STRING) USING delta {TRACKED}",
        "INSERT INTO {t} VALUES (10, 1, 'pen')",
    ),
    "customers": (
        f"CREATE TABLE {{t}} (id INT, city STRING) USING delta {TRACKED}",
        "INSERT INTO {t} VALUES (1, 'Ulm'), (2, 'Bonn')",
    ),
    "sold": ("CREATE TABLE {t} (id INT, city STRING, action STRING) USING delta",),
}


class Shop:
    """Orders of customers, a view that joins them, a table `sold` that the view's changes go to."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark = spark
        self.schema = f"shop_{uuid.uuid4().hex[:8]}"
        self.lake = connect(spark, f"sqlite:///{path}/control.db", lake_root=str(path), who="ann")
        self.run("CREATE DATABASE {s}")
        for name, statements in TABLES.items():
            put_table(spark, path / "shop" / name, *statements)
            self.run(f"CREATE TABLE {{s}}.{name} USING delta LOCATION '{path}/shop/{name}'")
        self.run(
            "CREATE VIEW {s}.sales AS SELECT o.id, c.city FROM {s}.orders o JOIN {s}.customers c ON o.customer = c.id",
        )

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.spark.sql(statement.format(s=self.schema))

    def create(self, name: str = "s", **how: Any) -> Any:
        return self.lake.create_stream(name, on=f"{self.schema}.sales", **how)

    def seen(self, frame: DataFrame | None = None) -> list[tuple[Any, ...]]:
        rows = self.lake.stream("s") if frame is None else frame
        return sorted(tuple(row) for row in rows.select("id", "city", f"`{ACTION}`", f"`{IS_UPDATE}`").collect())

    def consume(self) -> None:
        with self.lake.transaction() as tx:
            tx.sql(f"INSERT INTO {self.schema}.sold SELECT id, city, METADATA$ACTION FROM s")

    def sold(self) -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in self.spark.table(f"{self.schema}.sold").collect())

    @property
    def place(self) -> int:
        return int(self.lake.describe_stream("s").offset_version)


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(spark, tmp_path)
    yield made
    made.lake.close()
    made.run("DROP DATABASE {s} CASCADE")


def test_changes_of_either_table_arrive_once_and_both_places_move(shop: Shop) -> None:
    shop.create()
    assert not shop.lake.has_data("s")
    shop.run(
        "INSERT INTO {s}.orders VALUES (11, 2, 'cup')",
        "UPDATE {s}.customers SET city = 'Köln' WHERE id = 1",
        "INSERT INTO {s}.orders VALUES (12, 9, 'nobody bought this')",
    )
    expected = [(10, "Köln", "INSERT", True), (10, "Ulm", "DELETE", True), (11, "Bonn", "INSERT", False)]
    assert shop.seen() == expected
    before = shop.place
    shop.consume()
    shop.consume()
    assert shop.sold() == [(i, city, action) for i, city, action, _ in expected]
    assert (shop.place - before, shop.seen()) == (3, [])
    shop.run("DELETE FROM {s}.customers WHERE id = 2")
    assert shop.seen() == [(11, "Bonn", "DELETE", False)]


def test_what_is_read_in_a_transaction_stays_whatever_is_committed_meanwhile_r20(shop: Shop) -> None:
    shop.create()
    shop.run("INSERT INTO {s}.orders VALUES (11, 2, 'cup')")
    with shop.lake.transaction() as tx:
        first = shop.seen(tx.stream("s"))
        shop.run("DELETE FROM {s}.customers WHERE id = 2", "INSERT INTO {s}.orders VALUES (13, 1, 'ink')")
        assert shop.seen(tx.stream("s")) == first == [(11, "Bonn", "INSERT", False)]
        tx.sql(f"INSERT INTO {shop.schema}.sold SELECT id, city, METADATA$ACTION FROM s")
    assert shop.sold() == [(11, "Bonn", "INSERT")]
    assert shop.seen() == [(11, "Bonn", "DELETE", False), (13, "Ulm", "INSERT", False)]


def test_initial_rows_are_those_of_the_view_at_its_start_r10(shop: Shop) -> None:
    shop.create(show_initial_rows=True)
    shop.run("UPDATE {s}.customers SET city = 'Köln' WHERE id = 1")
    assert shop.seen() == [(10, "Ulm", "INSERT", False)]
    shop.consume()
    assert shop.seen() == [(10, "Köln", "INSERT", True), (10, "Ulm", "DELETE", True)]


def test_a_stream_is_described_as_one_on_a_view_r130(shop: Shop) -> None:
    shop.create(comment="what we sold")
    said = shop.lake.describe_stream("s")
    assert (said.source_type, said.stale, said.comment) == ("View", False, "what we sold")
    assert [name.rpartition(".")[2] for name in said.base_tables] == ["orders", "customers"]


def test_a_point_means_each_tables_version_at_it_r8(shop: Shop) -> None:
    then = datetime.now(UTC)
    shop.run("INSERT INTO {s}.orders VALUES (11, 2, 'cup')", "INSERT INTO {s}.customers VALUES (3, 'Gera')")
    shop.create(at=Timestamp(then))
    assert shop.seen() == [(11, "Bonn", "INSERT", False)]
    shop.create("later", at=Offset(0))
    assert not shop.lake.has_data("later")
    shop.create("same", at=Stream("s"))
    assert shop.lake.describe_stream("same").offset_version == shop.place
    with pytest.raises(InvalidArgument, match="have a version each"):
        shop.create("versioned", at=Version(1))


def test_a_clone_begins_where_the_stream_stands_and_an_advance_skips_r11(shop: Shop) -> None:
    shop.create()
    shop.run("INSERT INTO {s}.orders VALUES (11, 2, 'cup')")
    shop.lake.clone_stream("s", "t")
    shop.lake.advance_stream("s", why="known already")
    assert shop.seen() == []
    assert shop.seen(shop.lake.stream("t")) == [(11, "Bonn", "INSERT", False)]


def test_changes_of_a_view_need_no_stream_r113(shop: Shop) -> None:
    then = datetime.now(UTC)
    shop.run("INSERT INTO {s}.orders VALUES (11, 2, 'cup')", "DELETE FROM {s}.orders WHERE id = 10")
    view = f"{shop.schema}.sales"
    assert shop.seen(shop.lake.changes(view, at=Timestamp(then))) == [
        (10, "Ulm", "DELETE", False),
        (11, "Bonn", "INSERT", False),
    ]
    appended = shop.lake.changes(view, at=Timestamp(then), information="append_only")
    assert shop.seen(appended) == [(11, "Bonn", "INSERT", False)]


def test_a_recreated_view_is_another_one_r83(shop: Shop) -> None:
    shop.create()
    shop.run("CREATE OR REPLACE VIEW {s}.sales AS SELECT id, item AS city FROM {s}.orders")
    with pytest.raises(ViewChanged, match="'s'"):
        shop.lake.stream("s")
    with pytest.raises(ViewChanged), shop.lake.transaction() as tx:
        tx.stream("s")


def test_a_recreated_base_table_breaks_the_stream_and_says_which_r83(shop: Shop) -> None:
    shop.create()
    shop.run(f"CREATE OR REPLACE TABLE {{s}}.customers (id INT, city STRING) USING delta {TRACKED}")
    with pytest.raises(SourceRecreated, match="customers"):
        shop.lake.stream("s")
    said = shop.lake.describe_stream("s")
    assert said.stale
    assert "customers" in said.invalid_reason


def test_a_base_whose_log_is_cut_makes_the_stream_stale_r84(shop: Shop) -> None:
    shop.create()
    shop.run("ALTER TABLE {s}.customers SET TBLPROPERTIES ('delta.checkpointInterval' = '2')")
    shop.run(*("INSERT INTO {s}.customers VALUES (3, 'Gera')",) * 4)
    path = shop.spark.sql(f"DESCRIBE DETAIL {shop.schema}.customers").collect()[0]["location"].removeprefix("file:")
    log = Path(path) / "_delta_log"
    checkpoint = max(log.glob("*.checkpoint.parquet")).name[:20]
    for commit in (file for file in log.glob("*.json") if file.name[:20] < checkpoint):
        commit.unlink()
    with pytest.raises(StreamStale, match="customers"):
        shop.lake.stream("s")


def test_what_the_source_system_refuses_is_refused_at_creation_and_taken_beyond_it_r70(shop: Shop) -> None:
    shop.run("CREATE VIEW {s}.totals AS SELECT customer, count(*) AS n FROM {s}.orders GROUP BY customer")
    with pytest.raises(ViewRefused, match="Change tracking is not supported on queries with GROUP BY"):
        shop.lake.create_stream("g", on=f"{shop.schema}.totals")
    shop.lake.create_stream("g", on=f"{shop.schema}.totals", beyond_snowflake=True)
    shop.run("INSERT INTO {s}.orders VALUES (11, 1, 'cup')")
    rows = shop.lake.stream("g").select("customer", "n", f"`{ACTION}`", f"`{IS_UPDATE}`").collect()
    assert sorted(tuple(row) for row in rows) == [(1, 1, "DELETE", True), (1, 2, "INSERT", True)]


def test_R121_a_change_that_the_view_does_not_show_is_data_by_the_log_and_none_by_its_rows(shop: Shop) -> None:
    shop.create()
    place = shop.place
    shop.run("INSERT INTO {s}.customers VALUES (3, 'Kiel')")
    assert (shop.lake.has_data("s"), shop.lake.has_data("s", exact=True)) == (True, False)
    assert shop.place == place  # a question moves nothing
    shop.run("INSERT INTO {s}.orders VALUES (12, 3, 'ink')")
    assert shop.lake.has_data("s", exact=True)
