"""Chunks reach their sink once: records appended, changes applied, functions that know their chunk."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.engine.change_streams.log_builder import TYPES, LogBuilder, at
from tests.table_templates import put_table
from tidemark.change_streams.driver.apply import named_apply_error
from tidemark.change_streams.driver.job_read_partitions import read_partitions
from tidemark.change_streams.driver.records import RECORD_COLUMNS
from tidemark.change_streams.driver.sinks import ChunkSink
from tidemark.change_streams.model.change_streams import Chunk, Position
from tidemark.change_streams.model.jobs import READ_PARTITIONS
from tidemark.change_streams.model.sinks import ChunkAnswer, ChunkFacts, ChunkWrite, ReadRequest, Sink, SinkKind
from tidemark.errors import (
    InvalidArgument,
    MissingMergeKey,
    SerialReused,
    StatementRefused,
    TargetDoesNotFit,
    TargetNotFound,
    UpdateOfMissingRow,
)
from tidemark.jobs.context import JobContext
from tidemark.jobs.progress import Progress
from tidemark.jobs.spark_work import own_session
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.jobs import JobSpec
from tidemark.model.streams import Addressing, TableRef

pytestmark = pytest.mark.spark

GROUP = "g1"
COLUMNS = "id BIGINT, v STRING"
CALLS: list[tuple[ChunkFacts, int]] = []


def chunk(number: int, start: float, end: float, token: str = "a", **more: Any) -> Chunk:
    bounds = {"start": Position(at(start)), "end": Position(at(end)), "expected": 1, "last": False}
    return Chunk(group_uid=GROUP, stream_uid="s1", stream="s", group="g", token=token, number=number, **bounds, **more)


@pytest.fixture
def log(spark: SparkSession, tmp_path: Path) -> LogBuilder:
    return LogBuilder(spark, tmp_path / "log").create()


class Target:
    """A table of the test, and chunks that go to it in a session of their own, as a job has one."""

    def __init__(self, spark: SparkSession, path: Path, columns: str, log: LogBuilder, partitioned: str = "") -> None:
        self.spark, self.path, self.log = spark, path, log
        put_table(spark, path, f"CREATE TABLE {{t}} ({columns}) USING delta {partitioned}")
        self.ref = TableRef("target", str(path), DeltaLog.open(str(path)).state().table_id, Addressing.PATH)

    def sink(self, kind: SinkKind, keys: tuple[str, ...] = ()) -> ChunkSink:
        session = own_session(self.spark)
        return ChunkSink(session, "store", str(self.log.path), Sink(kind, self.ref, None, keys), lambda: None)

    def append(self, *chunks: Chunk) -> list[ChunkAnswer]:
        return [self.sink(SinkKind.APPEND).write(ChunkWrite(one)) for one in chunks]

    def merge(self, *chunks: Chunk) -> list[ChunkAnswer]:
        return [self.sink(SinkKind.MERGE).write(ChunkWrite(one)) for one in chunks]

    def rows(self) -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in self.spark.read.format("delta").load(str(self.path)).collect())

    @property
    def version(self) -> int:
        return DeltaLog.open(str(self.path)).head()


@pytest.fixture
def mirror(spark: SparkSession, tmp_path: Path, log: LogBuilder) -> Target:
    return Target(spark, tmp_path / "mirror", COLUMNS, log)


def test_records_are_appended_once_with_the_fields_that_the_target_has(
    spark: SparkSession, tmp_path: Path, log: LogBuilder
) -> None:
    mods = f"mods {RECORD_COLUMNS['mods'].upper()}"
    target = Target(spark, tmp_path / "history", f"commit_timestamp TIMESTAMP, mod_type STRING, {mods}, x BIGINT", log)
    log.record("a", 1, (1, 2)).record("a", 2, (1,), mod_type="DELETE").record("b", 1, (9,)).commit(3)
    first, second = target.append(chunk(0, 0, 2), chunk(1, 2, 3))
    assert (first.rows, first.found, second.rows) == (1, False, 1)
    again = target.append(chunk(0, 0, 2), chunk(1, 2, 3))
    assert [(one.rows, one.found) for one in again] == [(1, True), (1, True)]
    assert target.version == 2
    kept = [(row[1], [json.loads(mod[0])["id"] for mod in row[2]], row[3]) for row in target.rows()]
    assert kept == [("INSERT", ["1", "2"], None), ("DELETE", ["1"], None)]


def test_an_empty_chunk_is_a_commit_too_so_that_it_is_known(mirror: Target) -> None:
    for answer, found in zip(mirror.merge(*[chunk(0, 0, 1)] * 2), (False, True), strict=True):
        assert (answer.rows, answer.found) == (0, found)
    assert mirror.version == 1


def changed(log: LogBuilder, seconds: float, key: int, values: dict[str, Any], mod_type: str = "UPDATE") -> None:
    log.record("a", seconds, (key,), mod_type=mod_type, new_values=json.dumps(values))


def test_changes_are_applied_in_order_and_an_update_only_changes_what_it_modified(mirror: Target) -> None:
    log = mirror.log
    log.record("a", 1, (1, 2, 3))
    changed(log, 2, 1, {"v": "x"})
    log.record("a", 3, (2,), mod_type="DELETE")
    log.record("a", 4, (3,), mod_type="DELETE").record("a", 5, (3,), new_values=json.dumps({"v": None}))
    log.record("a", 6, (4,)).record("a", 7, (4,), mod_type="DELETE")
    log.commit(8)
    mirror.merge(chunk(0, 0, 8))
    assert mirror.rows() == [(1, "x"), (3, None)]
    changed(log, 8, 1, {})
    changed(log, 9, 3, {"v": "y"})
    log.record("a", 10, (1, 7), mod_type="DELETE").commit(11)
    mirror.merge(chunk(1, 8, 11))
    assert mirror.rows() == [(3, "y")]


def test_records_of_a_table_are_known_by_its_id_whatever_it_was_called(mirror: Target) -> None:
    mirror.log.record("a", 1, (1,)).record("a", 2, (2,), table_name="/lake/db/t")
    mirror.log.record("a", 3, (3,), server_transaction_id="t11:1").commit(4)  # of the table t11
    one = mirror.sink(SinkKind.MERGE)
    with pytest.raises(
        InvalidArgument, match=r"has records of db\.t, too.*an earlier table of that name"
    ):  # of the table t11
        replace(one, sink=replace(one.sink, table_id="t1", alone=True)).write(ChunkWrite(chunk(0, 0, 4)))
    answer = replace(one, sink=replace(one.sink, table_id="t1")).write(ChunkWrite(chunk(0, 0, 4)))
    assert (answer.rows, mirror.rows()) == (2, [(1, "n1"), (2, "n2")])


def test_a_replacement_in_one_transaction_ends_with_the_row_that_was_inserted(mirror: Target) -> None:
    mirror.log.record("a", 1, (1,)).commit(2)
    mirror.log.record("a", 2, (1,), mod_type="DELETE").record("a", 2, (1,), sequence=1, new_values='{"v": "new"}')
    mirror.log.commit(3)
    mirror.merge(chunk(0, 0, 2), chunk(1, 2, 3))
    assert mirror.rows() == [(1, "new")]


def test_an_update_of_a_row_that_is_not_there_is_never_a_row_of_parts(mirror: Target) -> None:
    changed(mirror.log, 1, 5, {"v": "x"})
    mirror.log.commit(2)
    with pytest.raises(Exception, match="TidemarkUpdateOfMissingRow") as caught:
        mirror.merge(chunk(0, 0, 2))
    named = named_apply_error(str(caught.value))
    assert isinstance(named, UpdateOfMissingRow)
    assert json.loads(named.facts["key"]) == {"id": "5"}
    assert (mirror.rows(), mirror.version) == ([], 0)


def test_an_update_with_the_whole_row_brings_the_row(mirror: Target) -> None:
    mirror.log.record("a", 1, (5,), mod_type="UPDATE", value_capture_type="NEW_ROW").commit(2)
    mirror.merge(chunk(0, 0, 2))
    assert mirror.rows() == [(5, "n5")]


@pytest.mark.parametrize("kind", ["STRING", "BINARY"])
def test_a_row_whose_key_is_empty_is_found_though_the_key_partitions_the_target(
    spark: SparkSession, tmp_path: Path, log: LogBuilder, kind: str
) -> None:
    columns = f"id {kind}, v STRING"
    target = Target(spark, tmp_path / "partitioned", columns, log, "PARTITIONED BY (id)")
    log.record("a", 1, ("",), bucket=0).commit(2)
    log.record("a", 2, ("",), bucket=0, mod_type="UPDATE", new_values='{"v": "x"}').commit(3)
    log.record("a", 3, ("",), bucket=0, mod_type="DELETE").commit(4)
    target.merge(chunk(0, 0, 2), chunk(1, 2, 3))
    assert target.rows() == [(None, "x")]
    target.merge(chunk(2, 3, 4))
    assert target.rows() == []


def test_records_of_two_keys_of_a_table_are_not_merged(mirror: Target) -> None:
    by_v = [{**one, "is_primary_key": one["name"] == "v"} for one in TYPES]
    mirror.log.record("a", 1, (1,)).record("a", 2, (2,), column_types=json.dumps(by_v)).commit(3)
    with pytest.raises(MissingMergeKey, match="some records know rows by id; others by v"):
        mirror.merge(chunk(0, 0, 3))
    assert (mirror.rows(), mirror.version) == ([], 0)


def test_files_of_the_target_that_can_have_none_of_the_keys_are_not_read(mirror: Target) -> None:
    mirror.log.record("a", 1, (1,)).record("a", 2, (100,)).commit(3)
    mirror.merge(chunk(0, 0, 2))
    (first,) = mirror.path.glob("part-*.parquet")
    mirror.merge(chunk(1, 2, 3))
    first.unlink()  # whoever reads it fails
    mirror.log.record("a", 4, (100,), new_values='{"v": "new"}', mod_type="UPDATE").commit(5)
    (answer,) = mirror.merge(chunk(2, 3, 5))
    assert (answer.rows, answer.facts["updated"]) == (1, "1")


TYPED = {
    "i": ("INT", "7", 7),
    "n": ("DECIMAL(30,10)", "12345678901234567890.0123456789", None),
    "d": ("DATE", "2026-02-03", None),
    "ts": ("TIMESTAMP", "2026-02-03T04:05:06.789012Z", None),
    "b": ("BINARY", base64.b64encode(b"\x00\xff").decode(), bytearray(b"\x00\xff")),
    "yes": ("BOOLEAN", True, True),
    "f": ("DOUBLE", 1.5, 1.5),
    "inf": ("DOUBLE", "-Infinity", float("-inf")),
    "a": ("ARRAY<BIGINT>", ["1", None, "9007199254740993"], [1, None, 9007199254740993]),
    "s": ("STRUCT<x: BIGINT, y: ARRAY<DATE>>", {"x": "3", "y": ["2026-01-01"]}, None),
    "m": ("MAP<STRING, BIGINT>", {"k": "4"}, {"k": 4}),
    "t": ("STRING", '{"not": "json"}', '{"not": "json"}'),
    "nothing": ("STRUCT<x: BIGINT>", None, None),
}


def test_values_of_all_types_come_back_as_they_were(spark: SparkSession, tmp_path: Path, log: LogBuilder) -> None:
    columns = ", ".join(f"{name} {kind}" for name, (kind, _, _) in TYPED.items())
    target = Target(spark, tmp_path / "typed", f"id BIGINT, {columns}", log)
    names = ["id", *TYPED]
    types = [
        {"name": name, "type": {"code": "ANY"}, "is_primary_key": name == "id", "ordinal_position": place}
        for place, name in enumerate(names, 1)
    ]
    values = json.dumps({name: given for name, (_, given, _) in sorted(TYPED.items())})
    log.record("a", 1, (1,), new_values=values, column_types=json.dumps(types)).commit(2)
    target.merge(chunk(0, 0, 2))
    row = spark.read.format("delta").load(str(target.path)).collect()[0].asDict(recursive=True)
    for name, (_, _, expected) in TYPED.items():
        if expected is not None:
            assert row[name] == expected, name
    texts = {name: str(row[name]) for name in ("n", "d")}
    assert texts == {"n": "12345678901234567890.0123456789", "d": "2026-02-03"}
    micros = spark.read.format("delta").load(str(target.path)).selectExpr("unix_micros(ts)").collect()[0][0]
    assert micros == 1770091506789012
    assert (str(row["s"]["y"][0]), row["s"]["x"], row["nothing"]) == ("2026-01-01", 3, None)


def test_a_target_with_char_columns_is_merged_into_unless_they_are_its_key(
    spark: SparkSession, tmp_path: Path, log: LogBuilder
) -> None:
    target = Target(spark, tmp_path / "padded", "id BIGINT, v CHAR(5)", log)
    spark.sql(f"INSERT INTO delta.`{target.path}` VALUES (8, 'a'), (9, 'a')")
    log.record("a", 1, (1, 2)).record("a", 2, (9,), mod_type="DELETE").commit(3)
    changed(log, 3, 1, {"v": "x"})
    changed(log, 3, 8, {"v": "y"})
    log.record("a", 4, (2,), mod_type="DELETE").commit(5)
    one = target.sink(SinkKind.MERGE)
    before = one.session.conf.get("spark.sql.readSideCharPadding")
    for number, (start, end) in enumerate([(0, 3), (3, 5)]):
        one.write(ChunkWrite(chunk(number, start, end)))
    assert target.rows() == [(1, "x    "), (8, "y    ")]
    assert one.session.conf.get("spark.sql.readSideCharPadding") == before
    keyed = Target(spark, tmp_path / "keyed", "id CHAR(5), v VARCHAR(5)", log)
    with pytest.raises(TargetDoesNotFit, match="key column id is CHAR"):
        keyed.merge(chunk(0, 0, 3))
    assert keyed.version == 0


def test_what_does_not_fit_is_refused_before_anything_is_written(
    spark: SparkSession, tmp_path: Path, log: LogBuilder
) -> None:
    log.record("a", 1).commit(2)
    narrow = Target(spark, tmp_path / "narrow", "id BIGINT", log)
    with pytest.raises(TargetDoesNotFit, match="it has no column v"):
        narrow.merge(chunk(0, 0, 2))
    with pytest.raises(TargetDoesNotFit, match="no column of a record"):
        narrow.append(chunk(0, 0, 2))
    with pytest.raises(MissingMergeKey, match="by id alone"):
        narrow.sink(SinkKind.MERGE, ("v",)).write(ChunkWrite(chunk(0, 0, 2)))
    other = Target(spark, tmp_path / "other", "mod_type BIGINT, x STRING NOT NULL", log)
    with pytest.raises(TargetDoesNotFit, match=r"mod_type is bigint.*NOT NULL column x"):
        other.append(chunk(0, 0, 2))
    assert (narrow.version, other.version) == (0, 0)


def test_a_number_that_was_used_with_other_bounds_is_refused(mirror: Target) -> None:
    mirror.log.record("a", 1, (1,)).record("a", 2, (2,)).commit(3)
    mirror.merge(chunk(0, 0, 2))
    with pytest.raises(SerialReused):
        mirror.merge(chunk(0, 0, 3))
    with pytest.raises(SerialReused):
        mirror.merge(replace(chunk(0, 0, 2), stream_uid="another"))
    assert mirror.rows() == [(1, "n1")]


def test_another_group_and_another_token_write_chunks_of_the_same_number(mirror: Target) -> None:
    mirror.log.record("a", 1, (1,)).record("b", 1, (2,)).commit(3)
    mirror.merge(chunk(0, 0, 2), chunk(0, 0, 2, token="b"), replace(chunk(0, 0, 2), group_uid="reset"))
    assert (mirror.rows(), mirror.version) == ([(1, "n1"), (2, "n2")], 3)


def test_a_chunk_below_a_later_one_is_found_and_not_refused(mirror: Target) -> None:
    mirror.log.record("a", 1, (1,)).record("a", 2, (2,)).commit(3)
    mirror.merge(chunk(0, 0, 2), chunk(1, 2, 3))
    assert [one.found for one in mirror.merge(chunk(0, 0, 2), chunk(1, 2, 3))] == [True, True]


def take(rows: DataFrame, facts: ChunkFacts) -> int:
    CALLS.append((facts, rows.count()))
    return CALLS[-1][1]


def fail_on_b(rows: DataFrame, facts: ChunkFacts) -> None:
    if facts.token == "b":
        raise ValueError("b is bad")
    take(rows, facts)


def job(spark: SparkSession, log: LogBuilder, sink: Sink, chunks: Sequence[Chunk]) -> list[ChunkAnswer]:
    request = ReadRequest(str(log.path), sink, tuple(ChunkWrite(one) for one in chunks))
    spec = JobSpec(READ_PARTITIONS.name, READ_PARTITIONS.entry, {}, "store", "", "r", "c", at(0))
    said: list[str] = []
    context = JobContext(own_session(spark), spec, {}, Progress(list, said.append), at(0), lambda: None)
    answers = read_partitions(context, request).chunks
    assert len(said) == len(answers)
    return list(answers)


def function(name: str) -> Sink:
    return Sink(SinkKind.FUNCTION, function=f"{__name__}:{name}")


def test_a_function_gets_the_records_and_an_identity_that_is_the_same_at_each_attempt(
    spark: SparkSession, log: LogBuilder
) -> None:
    CALLS.clear()
    log.record("a", 1, (1, 2)).record("a", 2, (1,)).commit(3)
    for _ in range(2):
        (answer,) = job(spark, log, function("take"), [chunk(0, 0, 3)])
        assert (answer.rows, answer.found, answer.error) == (2, False, None)
    (first, _), (second, _) = CALLS
    assert first == second
    assert (first.app_id, first.txn_version) == ("tidemark/store/g1/a", 1)


def test_a_function_that_is_not_there_is_refused_before_a_chunk_is_read(spark: SparkSession, log: LogBuilder) -> None:
    with pytest.raises(StatementRefused, match="cannot be imported"):
        job(spark, log, function("nobody"), [chunk(0, 0, 3)])


def test_a_failing_chunk_does_not_stop_its_siblings_but_the_later_ones_of_its_token(
    spark: SparkSession, log: LogBuilder
) -> None:
    CALLS.clear()
    log.record("a", 1).record("b", 1).record("c", 1).commit(3)
    chunks = [chunk(0, 0, 2), chunk(0, 0, 2, "b"), chunk(1, 2, 3, "b"), chunk(0, 0, 2, "c")]
    answers = job(spark, log, function("fail_on_b"), chunks)
    assert [(one.token, one.number, one.error is None) for one in answers] == [
        ("a", 0, True), ("b", 0, False), ("c", 0, True),
    ]  # fmt: skip
    assert [facts.token for facts, _ in CALLS] == ["a", "c"]
    failed = answers[1].error
    assert failed is not None
    assert "b is bad" in failed.message


def test_the_error_of_a_merge_comes_back_by_its_name(spark: SparkSession, mirror: Target) -> None:
    changed(mirror.log, 1, 5, {"v": "x"})
    mirror.log.commit(2)
    (answer,) = job(spark, mirror.log, Sink(SinkKind.MERGE, mirror.ref), [chunk(0, 0, 2)])
    assert answer.error is not None
    assert answer.error.error == "UpdateOfMissingRow"


def test_a_target_that_is_not_there_is_named(spark: SparkSession, log: LogBuilder, tmp_path: Path) -> None:
    gone = TableRef("gone", str(tmp_path / "gone"), "x", Addressing.PATH)
    (answer,) = job(spark, log, Sink(SinkKind.APPEND, gone), [chunk(0, 0, 2)])
    assert answer.error is not None
    assert answer.error.error == TargetNotFound.__name__
