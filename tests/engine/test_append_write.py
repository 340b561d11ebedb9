"""An append takes every row of the stream, if its columns fit."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StructType

from tests.engine.statements import make, rows_of, statement
from tidemark.delivery.driver.append import prepare_append
from tidemark.delivery.driver.exactly_once import open_target, target_schema
from tidemark.delivery.driver.fit import fit_columns
from tidemark.errors import TargetDoesNotFit
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.statements import SchemaEvolution

pytestmark = pytest.mark.spark

CHANGES = "id INT, v STRING, `METADATA$ACTION` STRING, `METADATA$ISUPDATE` BOOLEAN, `METADATA$ROW_ID` STRING"
ROWS = [(1, "a", "DELETE", True, "r1"), (1, "b", "INSERT", True, "r1")]


def append(spark, path, *, schema=CHANGES, rows=ROWS, evolution=SchemaEvolution.FAIL):
    stmt = statement(path, schema_evolution=evolution)
    frame = spark.createDataFrame(rows, schema)
    prepare_append(frame, stmt, target_schema(open_target(stmt, None))).run()


@pytest.mark.quick
def test_source_columns_are_written_and_metadata_columns_only_where_the_target_has_them(spark, tmp_path):
    make(spark, tmp_path / "plain", [])
    append(spark, tmp_path / "plain")
    assert rows_of(spark, tmp_path / "plain") == [(1, "a"), (1, "b")]
    make(spark, tmp_path / "with_action", [], "`METADATA$ACTION` STRING, V STRING, id BIGINT")
    append(spark, tmp_path / "with_action")
    assert rows_of(spark, tmp_path / "with_action") == [("DELETE", "a", 1), ("INSERT", "b", 1)]


def test_new_columns_fail_or_are_added_in_the_same_commit(spark, tmp_path):
    path = tmp_path / "t"
    make(spark, path, [(7,)], "id BIGINT")
    with pytest.raises(TargetDoesNotFit, match="no column v"):
        append(spark, path)
    append(spark, path, evolution=SchemaEvolution.ADD)
    assert {tuple(r) for r in spark.read.format("delta").load(str(path)).collect()} == {(7, None), (1, "a"), (1, "b")}
    assert DeltaLog.open(str(path)).head() == 1


def fitted(source, target, evolution=SchemaEvolution.FAIL):
    return fit_columns(StructType.fromDDL(source), StructType.fromDDL(target), target_name="t", evolution=evolution)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("a INT", "a BIGINT"),
        ("a SMALLINT", "a DOUBLE"),
        ("a FLOAT", "a DOUBLE"),
        ("a BIGINT", "a DECIMAL(19,0)"),
        ("a DECIMAL(5,2)", "a DECIMAL(10,4)"),
        ("a STRUCT<x: INT>", "A STRUCT<x: INT>"),
        ("a INT", "a INT, b STRING"),
    ],
)
def test_equal_and_wider_types_fit(source, target):
    (column, *_) = fitted(source, target)
    assert column.data_type == StructType.fromDDL(target)[0].dataType


@pytest.mark.parametrize(
    ("source", "target", "problem"),
    [
        ("a BIGINT", "a INT", "column a is bigint, there int"),
        ("a BIGINT", "a DOUBLE", "column a is bigint, there double"),
        ("a STRING", "a INT", "column a is string, there int"),
        ("a DECIMAL(10,4)", "a DECIMAL(10,2)", "decimal"),
        ("a INT, b INT, c INT", "a INT", "no column b, c"),
        ("a INT", "a INT, n STRING NOT NULL", "NOT NULL column n would get no value"),
    ],
)
def test_what_does_not_fit_is_named(source, target, problem):
    with pytest.raises(TargetDoesNotFit, match=problem):
        fitted(source, target)


def test_all_problems_are_named_at_once():
    with pytest.raises(TargetDoesNotFit, match=r"no column z.*column a is string.*NOT NULL column n"):
        fitted("a STRING, z INT", "a INT, n INT NOT NULL")
