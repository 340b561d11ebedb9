"""Flat rows and records of a token: half-open ranges of positions, in order, and no other file is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.engine.change_streams.log_builder import LogBuilder, at
from tidemark.change_streams.driver.read import read_mods, read_records
from tidemark.change_streams.driver.records import RECORD_COLUMNS
from tidemark.change_streams.model.change_streams import Position
from tidemark.errors import TableNotFound

pytestmark = pytest.mark.spark

START, END = Position(at(0)), Position(at(100))


@pytest.fixture(scope="module")
def log(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> LogBuilder:
    """Two tokens, three batches of 10 s; the second has a transaction of three records of `a`."""
    made = LogBuilder(spark, tmp_path_factory.mktemp("log")).create()
    made.partition("a", 0, hi=9).partition("b", 0, lo=9).record("a", 1, [1, 2, 3]).record("b", 2, [9]).commit(10)
    for sequence in (2, 0, 1):
        made.record("a", 15, [sequence], sequence, "UPDATE")
    made.record("b", 16).commit(20)
    return made.record("a", 21, [5], 0, "DELETE").record("b", 22).commit(30)


def places(frame: DataFrame) -> list[tuple[float, str]]:
    rows = frame.select(F.unix_micros("commit_timestamp"), "record_sequence").collect()
    return [(row[0] / 1e6 - at(0).timestamp(), row[1].lstrip("0")) for row in rows]


def test_a_record_has_the_columns_and_types_of_the_contract_and_its_mods_in_order(log: LogBuilder) -> None:
    records = read_records(log.spark, str(log.path), "a", START, Position(at(2)))
    assert {field.name: field.dataType.simpleString() for field in records.schema} == {
        name: kind.replace(": ", ":").replace(", ", ",") for name, kind in RECORD_COLUMNS.items()
    }
    (row,) = records.collect()
    assert [json.loads(mod["keys"]) for mod in row["mods"]] == [{"id": "1"}, {"id": "2"}, {"id": "3"}]
    assert (row["mods"][0]["new_values"], row["mods"][0]["old_values"]) == ('{"v": "n1"}', "{}")
    assert [(one["name"], json.loads(one["type"]), one["ordinal_position"]) for one in row["column_types"]] == [
        ("id", {"code": "INT64"}, 1),
        ("v", {"code": "STRING"}, 3),
    ]


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        (START, END, [(1, ""), (15, ""), (15, "1"), (15, "2"), (21, "")]),
        (Position(at(1)), Position(at(15)), [(1, "")]),
        (Position(at(15), "000000000001"), Position(at(21)), [(15, "1"), (15, "2")]),
        (Position(at(15)), Position(at(15), "000000000001"), [(15, "")]),
        (Position(at(15), "000000000001"), Position(at(15), "000000000002"), [(15, "1")]),
        (Position(at(15)), Position(at(15)), []),
    ],
)
def test_a_range_is_half_open_also_inside_a_transaction(
    log: LogBuilder, start: Position, end: Position, found: list[tuple[float, str]]
) -> None:
    assert places(read_records(log.spark, str(log.path), "a", start, end)) == found


def test_other_tokens_and_other_times_are_not_read(log: LogBuilder) -> None:
    def files(start: float, end: float) -> list[str]:
        return read_mods(log.spark, str(log.path), "a", Position(at(start)), Position(at(end))).inputFiles()

    assert {Path(name).parent.name for name in files(0, 100)} == {"partition_token=a"}
    assert (len(files(0, 100)), len(files(12, 19)), len(files(40, 50))) == (3, 1, 0)


def test_what_is_appended_after_the_call_is_not_seen(spark: SparkSession, tmp_path: Path) -> None:
    log = LogBuilder(spark, tmp_path).create().partition("a", 0).record("a", 1).commit(10)
    records = read_records(spark, str(log.path), "a", START, END)
    log.record("a", 11).commit(20)
    assert places(records) == [(1, "")]


def test_a_log_that_is_not_there_is_an_error_of_ours(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TableNotFound):
        read_mods(spark, str(tmp_path / "none"), "a", START, END)
