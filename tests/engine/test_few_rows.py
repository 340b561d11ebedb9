"""Few rows, read by the driver: the same change set as Spark's, in all types, or left to Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.engine.lakes import Lake
from tidemark.changes.driver.few_rows import few_sides
from tidemark.changes.driver.rows import read_changes
from tidemark.changes.planning.sets import few
from tidemark.changes.planning.sets.plan import ChangePlan

pytestmark = pytest.mark.spark

EVERY_TYPE = """
    k INT, tiny TINYINT, small SMALLINT, big BIGINT, single FLOAT, double DOUBLE, yes BOOLEAN, text STRING,
    bytes BINARY, day DATE, moment TIMESTAMP, local TIMESTAMP_NTZ, price DECIMAL(12, 3), wide DECIMAL(38, 10),
    `a.b` STRING, code STRING, name VARCHAR(9), list ARRAY<INT>, pair STRUCT<a: INT, b: STRING>,
    map MAP<STRING, BIGINT>, deep ARRAY<STRUCT<x: ARRAY<STRING>, y: DATE>>, seen ARRAY<TIMESTAMP>
"""
A_ROW = """
    {k}, 1Y, 2S, 3L, CAST(1.5 AS FLOAT), double('NaN'), true, 'ä {k}', X'00ff', DATE'1582-10-15',
    TIMESTAMP'2024-03-31 02:30:00.123456', TIMESTAMP_NTZ'0001-01-01 00:00:00', 1.5, 1e20, 'd', 'ab', 'c',
    array(1, NULL), struct(1, 'x'), map('a', 1L), array(struct(array('p'), DATE'2020-02-29')),
    array(TIMESTAMP'2024-01-01 00:00:00')
"""


@pytest.mark.parametrize("times", ["INT96", "TIMESTAMP_MICROS"])
def test_values_of_every_type_are_those_that_spark_reads(lake: Lake, times: str) -> None:
    lake.spark.conf.set("spark.sql.parquet.outputTimestampType", times)
    try:
        start = lake.create(EVERY_TYPE).version
        rows = ", ".join(f"({A_ROW.format(k=k)})" for k in range(4))
        nulls = ", ".join(["NULL"] * 21)
        lake.sql(f"INSERT INTO {{t}} VALUES {rows}", f"INSERT INTO {{t}} VALUES (9, {nulls})")
        lake.sql("UPDATE {t} SET text = 'new', moment = TIMESTAMP'3000-01-01 00:00:00' WHERE k = 2")
    finally:
        lake.spark.conf.unset("spark.sql.parquet.outputTimestampType")
    plan = lake.plan(start)
    assert plan.in_driver
    nested_times_are_of_the_older_form = times == "INT96"
    assert (few_sides(lake.spark, lake.log, plan) is None) is nested_times_are_of_the_older_form
    assert _both(lake, plan) == 5
    assert _both(lake, lake.plan(lake.version - 1)) == 2


def test_rows_that_an_update_carried_over_are_left_out(lake: Lake) -> None:
    start = lake.create(delta__enableDeletionVectors="false").sql(
        "INSERT INTO {t} SELECT CAST(id AS INT), 'a' FROM range(0, 50000, 1, 1)"
    )
    lake.sql("UPDATE {t} SET v = 'b' WHERE k % 10000 = 3", "DELETE FROM {t} WHERE k = 4", "OPTIMIZE {t}")
    plan = lake.plan(start)
    assert (plan.in_driver, plan.rows() > 90_000) == (True, True)
    sides = few_sides(lake.spark, lake.log, plan)
    assert sides is not None
    assert sides.count() == 6
    assert _both(lake, plan) == 11


def test_a_partitioned_table_with_columns_that_came_later(lake: Lake) -> None:
    start = lake.create("k INT, day DATE, kind STRING", "PARTITIONED BY (day, kind)").version
    lake.sql("INSERT INTO {t} VALUES (1, DATE'2024-02-29', 'a'), (2, NULL, ''), (3, DATE'2024-01-01', NULL)")
    lake.sql("ALTER TABLE {t} ADD COLUMN more STRUCT<a: INT>", "INSERT INTO {t} VALUES (4, NULL, 'ü %', struct(1))")
    assert _both(lake, lake.plan(start)) == 4


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda t: t.replace_schema_metadata({b"org.apache.spark.version": b"3.0.1"}), id="an old Spark"),
        pytest.param(
            lambda t: t.replace_schema_metadata({b"org.apache.spark.legacyDateTime": b""}), id="the older calendar"
        ),
        pytest.param(lambda t: t.append_column("V", t["v"]), id="two names that differ by case"),
        pytest.param(lambda t: t.set_column(0, "k", t["k"].cast(pa.int64())), id="another type"),
        pytest.param(lambda t: t.rename_columns(["K", "v"]), id="a name in another case"),
    ],
)
def test_a_file_that_could_be_read_otherwise_is_left_to_spark(lake: Lake, change: Callable[[Any], Any]) -> None:
    start = lake.create("k INT, v STRING").version
    lake.sql("INSERT INTO {t} VALUES (1, 'a')")
    plan = lake.plan(start)
    assert few_sides(lake.spark, lake.log, plan) is not None
    (file,) = plan.files
    path = Path(urlsplit(file.path).path)
    pq.write_table(change(pq.read_table(path).replace_schema_metadata(None)), path)
    assert few_sides(lake.spark, lake.log, plan) is None


def test_many_changed_rows_are_left_to_spark(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    start = lake.create("k INT, v STRING").version
    lake.sql(f"INSERT INTO {{t}} SELECT CAST(id AS INT), 'a' FROM range(0, {few.MOST_IMAGES + 1}, 1, 1)")
    plan = lake.plan(start)
    assert few_sides(lake.spark, lake.log, plan) is None
    assert _count(lake, plan) == few.MOST_IMAGES + 1


def test_columns_that_spark_pads_are_left_to_it(lake: Lake) -> None:
    start = lake.create("k INT, v CHAR(5)").version
    lake.sql("INSERT INTO {t} VALUES (1, 'a')")
    assert not lake.plan(start).in_driver
    assert lake.changes(start) == [("INSERT", False, 1, "a    ")]


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"keys": ("k",)}, id="by key"),
        pytest.param({"files": ()}, id="nothing to read"),
    ],
)
def test_a_plan_by_key_and_one_without_files_have_none(lake: Lake, more: dict[str, Any]) -> None:
    start = lake.create("k INT, v STRING").version
    lake.sql("INSERT INTO {t} VALUES (1, 'a')")
    assert not few.has_few_rows(replace(lake.plan(start), **more))


def test_large_files_are_left_to_spark(lake: Lake) -> None:
    start = lake.create("k INT, v STRING").version
    lake.sql("INSERT INTO {t} VALUES (1, 'a')")
    plan = lake.plan(start)
    (file,) = plan.files
    assert few.has_few_rows(plan)
    assert not few.has_few_rows(replace(plan, files=(replace(file, size=few.MOST_BYTES + 1),)))
    assert not few.has_few_rows(replace(plan, files=(replace(file, rows=few.MOST_IDS + 1),)))
    many = tuple(replace(file, path=f"{file.path}{number}") for number in range(few.MOST_FILES + 1))
    assert not few.has_few_rows(replace(plan, files=many))


def _both(lake: Lake, plan: ChangePlan) -> int:
    """The number of changes, after the driver's were compared with Spark's."""
    ways = [_rows(lake, one) for one in (plan, replace(plan, in_driver=False))]
    assert ways[0] == ways[1]
    return len(ways[0])


def _rows(lake: Lake, plan: ChangePlan) -> list[str]:
    return sorted(map(str, read_changes(lake.spark, lake.log, plan, lake.workspace).collect()))


def _count(lake: Lake, plan: ChangePlan) -> int:
    return read_changes(lake.spark, lake.log, plan, lake.workspace).count()
