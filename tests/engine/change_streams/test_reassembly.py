"""Transactions are whole below the low watermark, or nothing is handed out (partitions.md 1.4)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.engine.change_streams.log_builder import LogBuilder, at
from tidemark.change_streams.driver.read import read_records
from tidemark.change_streams.driver.reassembly import assemble_transactions, net_effect, read_transactions
from tidemark.change_streams.driver.records import RECORD_COLUMNS
from tidemark.change_streams.model.change_streams import Position
from tidemark.errors import InvalidArgument, OutOfRange, TransactionIncomplete

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def log(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> LogBuilder:
    """At 1 s a transaction of four records in two partitions, at 2 s one of one, at 3 s one that lacks a record."""
    made = LogBuilder(spark, tmp_path_factory.mktemp("log")).create()
    four = {"number_of_records_in_transaction": 4, "number_of_partitions_in_transaction": 2, "transaction_tag": "x"}
    for sequence, token in ((2, "a"), (0, "b"), (3, "b"), (1, "a")):
        made.record(token, 1, [10 + sequence], sequence, **four)
    made.record("b", 2, [5, 6]).record("a", 3, [7], 1, number_of_records_in_transaction=2)
    return made.commit(10)


def records(log: LogBuilder, *tokens: str) -> DataFrame:
    whole = (Position(at(0)), Position(at(10)))
    frames = [read_records(log.spark, str(log.path), token, *whole) for token in tokens]
    return frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])


def test_a_transaction_is_put_together_from_all_partitions_in_the_order_of_its_records(log: LogBuilder) -> None:
    transactions = assemble_transactions(records(log, "a", "b"), at(3), stream="s")
    first, second = transactions.collect()
    assert [int(json.loads(one["mods"][0]["keys"])["id"]) for one in first["records"]] == [10, 11, 12, 13]
    assert (first["server_transaction_id"], first["transaction_tag"]) == ("t1:1000", "x")
    assert (second["server_transaction_id"], len(second["records"])) == ("t1:2000", 1)
    (kind,) = (field.dataType for field in transactions.schema if field.name == "records")
    assert kind.elementType.names == list(RECORD_COLUMNS)


def test_a_record_that_came_twice_is_there_once(log: LogBuilder) -> None:
    twice = records(log, "a", "b").unionByName(records(log, "a"))
    assert [len(row["records"]) for row in assemble_transactions(twice, at(3), stream="s").collect()] == [4, 1]


def test_what_is_at_the_low_watermark_waits(log: LogBuilder) -> None:
    assert assemble_transactions(records(log, "a", "b"), at(1), stream="s").collect() == []
    assert assemble_transactions(records(log, "a", "b"), at(2), stream="s").count() == 1


def test_a_record_that_is_missing_below_it_is_an_error_and_nothing_is_handed_out(log: LogBuilder) -> None:
    with pytest.raises(TransactionIncomplete, match="t1:3000 of change stream s has 1 of 2 records"):
        assemble_transactions(records(log, "a", "b"), at(3.1), stream="s")
    with pytest.raises(TransactionIncomplete, match="t1:1000 of change stream s has 2 of 4 records"):
        assemble_transactions(records(log, "b"), at(2), stream="s")


def transactions(log: LogBuilder, start: float, end: float | None = None, low: float | None = None) -> DataFrame:
    return read_transactions(
        log.spark,
        log.stream(10),
        now=at(20),
        start_timestamp=at(start),
        end_timestamp=None if end is None else at(end),
        low_watermark=None if low is None else at(low),
    )


@pytest.mark.parametrize(
    ("start", "end", "low", "found"),
    [
        (0, None, 3, {"t1:1000": 4, "t1:2000": 1}),
        (0, None, 2, {"t1:1000": 4}),
        (0, 2, 3, {"t1:1000": 4, "t1:2000": 1}),
        (1, 1, None, {"t1:1000": 4}),
        (2, None, 3, {"t1:2000": 1}),
        (4, None, None, {}),
        (4, None, 3, {}),
    ],
)
def test_transactions_are_read_from_all_partitions_below_the_low_watermark(
    log: LogBuilder, start: float, end: float | None, low: float | None, found: dict[str, int]
) -> None:
    rows = transactions(log, start, end, low).collect()
    assert {row["server_transaction_id"]: len(row["records"]) for row in rows} == found
    for row in rows:
        sequences = [int(record["record_sequence"]) for record in row["records"]]
        assert sequences == list(range(len(sequences)))


def test_nothing_is_read_where_a_record_of_a_transaction_is_missing(log: LogBuilder) -> None:
    with pytest.raises(TransactionIncomplete, match="t1:3000 of change stream s has 1 of 2 records"):
        transactions(log, 0)


def test_a_watermark_that_nobody_can_promise_is_refused(log: LogBuilder) -> None:
    with pytest.raises(OutOfRange, match="transactions after it may lack records"):
        transactions(log, 0, None, 10.000001)
    with pytest.raises(InvalidArgument, match="start_timestamp must be <= end_timestamp"):
        transactions(log, 2, 1)


INSERT, UPDATE, DELETE = "INSERT", "UPDATE", "DELETE"
CASES: dict[str, tuple[Sequence[tuple[str, dict[str, Any], dict[str, Any]]], list[tuple[str, Any, Any]]]] = {
    "insert": ([(INSERT, {"v": 1}, {})], [(INSERT, {"v": 1}, {})]),
    "insert and update": (
        [(INSERT, {"v": 1, "w": "a"}, {}), (UPDATE, {"v": 2}, {"v": 1})],
        [(INSERT, {"v": 2, "w": "a"}, {})],
    ),
    "insert and delete": ([(INSERT, {"v": 1}, {}), (DELETE, {}, {"v": 1})], []),
    "two updates": (
        [(UPDATE, {"v": 2}, {"v": 1}), (UPDATE, {"v": 3, "w": None}, {"v": 2, "w": "a"})],
        [(UPDATE, {"v": 3, "w": None}, {"v": 1, "w": "a"})],
    ),
    "update and delete": (
        [(UPDATE, {"v": 2}, {"v": 1}), (DELETE, {}, {"v": 2, "w": "a"})],
        [(DELETE, {}, {"v": 1, "w": "a"})],
    ),
    "replacement": (
        [(DELETE, {}, {"v": 1}), (INSERT, {"v": 2}, {})],
        [(DELETE, {}, {"v": 1}), (INSERT, {"v": 2}, {})],
    ),
    "replaced and updated": (
        [(DELETE, {}, {"v": 1}), (INSERT, {"v": 2, "w": "a"}, {}), (UPDATE, {"v": 3}, {"v": 2})],
        [(DELETE, {}, {"v": 1}), (INSERT, {"v": 3, "w": "a"}, {})],
    ),
    "replaced and deleted": (
        [(DELETE, {}, {"v": 1}), (INSERT, {"v": 2}, {}), (DELETE, {}, {"v": 2})],
        [(DELETE, {}, {"v": 1})],
    ),
    "inserted, deleted, inserted": (
        [(INSERT, {"v": 1}, {}), (DELETE, {}, {"v": 1}), (INSERT, {"w": 2}, {})],
        [(INSERT, {"w": 2}, {})],
    ),
}


def test_the_net_effect_of_each_key(spark: SparkSession, tmp_path: Path) -> None:
    """All cases are one transaction, a key each; and one beside it comes to nothing."""
    log = LogBuilder(spark, tmp_path / "log").create()
    longest = max(len(mods) for mods, _ in CASES.values())
    number = sum(len(mods) for mods, _ in CASES.values())
    for step in range(longest):
        for key, (mods, _) in enumerate(CASES.values()):
            if step < len(mods):
                kind, new, old = mods[step]
                values = {"new_values": json.dumps(new), "old_values": json.dumps(old)}
                count = {"number_of_records_in_transaction": number}
                log.record("a", 1, [key], step * 100 + key, kind, **values, **count)
    for sequence, kind in enumerate((INSERT, DELETE)):
        log.record("a", 2, [1], sequence, kind, number_of_records_in_transaction=2)
    log.commit(10)
    changed, nothing = net_effect(assemble_transactions(records(log, "a"), at(10), stream="s")).collect()
    assert nothing["changes"] == []
    found: dict[int, list[Any]] = {key: [] for key in range(len(CASES))}
    for one in changed["changes"]:
        values = (json.loads(one[name]) for name in ("new_values", "old_values"))
        found[int(json.loads(one["keys"])["id"])].append((one["mod_type"], *values))
    assert dict(zip(CASES, found.values(), strict=True)) == {name: net for name, (_, net) in CASES.items()}
