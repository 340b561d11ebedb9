"""READ_<stream>: its row shape, its order, its ends, and what it promises by a heartbeat (partitions.md 1)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.engine.change_streams.log_builder import LogBuilder, at
from tidemark.change_streams.driver.read import read_change_stream
from tidemark.change_streams.driver.records import CHANGE_RECORD
from tidemark.change_streams.planning.tokens import first_partitions, make_token
from tidemark.errors import (
    ChangeStreamNotFound,
    InvalidArgument,
    OutOfRange,
    PartitionExpired,
    PartitionTokenInvalid,
    TidemarkError,
    Unimplemented,
)

pytestmark = pytest.mark.spark

ROOT, LEFT, RIGHT, MERGED = (
    make_token("s1", lo, hi, n) for lo, hi, n in ((0, 65_536, 0), (0, 9, 2), (9, 65_536, 2), (0, 65_536, 3))
)
SPLIT, MERGE = 30, 40


@pytest.fixture(scope="module")
def log(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> LogBuilder:
    """Batches until 10, 20, 30 (split), 40 (merge), 50 s; the store has published until 55 s."""
    made = LogBuilder(spark, tmp_path_factory.mktemp("log")).create().partition(ROOT, 0)
    made.record(ROOT, 1, [1, 2]).record(ROOT, 5, [1], 1, "UPDATE").record(ROOT, 5, [2], 0, "DELETE").commit(10)
    made.record(ROOT, 12).commit(20)
    made.partition(RIGHT, SPLIT, ROOT, lo=9).partition(LEFT, SPLIT, ROOT, hi=9).record(ROOT, 21).commit(SPLIT)
    made.partition(MERGED, MERGE, RIGHT, LEFT).record(LEFT, SPLIT).record(RIGHT, SPLIT + 1).commit(MERGE)
    return made.record(MERGED, 45).commit(50)


def read(
    log: LogBuilder, start: float | None, end: float | None = None, token: str | None = None, **more: Any
) -> list[Any]:
    """The records, in short: (seconds, `data` keys…), (seconds, heartbeat), (seconds, tokens)."""
    frame = frame_of(log, start, end, token, **more)
    assert frame.columns == [CHANGE_RECORD]
    rows = frame.select(
        F.to_json(CHANGE_RECORD, {"timeZone": "UTC", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSX"}).alias("text")
    ).collect()
    return [short(json.loads(row["text"])) for row in rows]


def frame_of(
    log: LogBuilder, start: float | None, end: float | None = None, token: str | None = None, **more: Any
) -> Any:
    usual = {"now": at(60), "heartbeat_milliseconds": 300_000}
    return read_change_stream(
        log.spark,
        more.pop("stream", log.stream(55)),
        start_timestamp=None if start is None else at(start),
        end_timestamp=None if end is None else at(end),
        partition_token=token,
        **{**usual, **more},
    )


def short(change: list[dict[str, list[Any]]]) -> tuple[Any, ...]:
    (arrays,) = change
    ((kind, record),) = ((kind, record) for kind, found in arrays.items() for record in found)
    match kind:
        case "data_change_record":
            return (
                seconds(record["commit_timestamp"]),
                *(int(json.loads(mod["keys"])["id"]) for mod in record["mods"]),
            )
        case "heartbeat_record":
            return (seconds(record["timestamp"]), "beat")
    children = {one["token"]: one["parent_partition_tokens"] for one in record["child_partitions"]}
    return (seconds(record["start_timestamp"]), record["record_sequence"], children)


def seconds(text: str) -> float:
    return (datetime.fromisoformat(text) - at(0)) / timedelta(seconds=1)


def test_reads_that_begin_a_microsecond_after_the_last_row_return_each_record_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = LogBuilder(spark, tmp_path / "log").create().partition(ROOT, 0)
    microsecond, start, found = 0.000_001, 0.0, []
    for last, until in ((1, 1 + microsecond), (2, 5)):  # the first read ends with a record, the second with a heartbeat
        made.record(ROOT, last, [last]).commit(until)
        rows = [row for row in read(made, start, token="ALL", stream=made.stream(until)) if len(row) == 2]
        found += [row[1] for row in rows]
        start = rows[-1][0] + microsecond
    assert found == [1, 2, "beat"]


def test_a_partition_is_read_in_order_and_its_children_last(log: LogBuilder) -> None:
    children = {LEFT: [ROOT], RIGHT: [ROOT]}
    assert read(log, 0, token=ROOT) == [(1, 1, 2), (5, 2), (5, 1), (12, 1), (21, 1), (30, "00000000", children)]


def test_a_merged_partition_comes_from_each_parent_with_all_parents(log: LogBuilder) -> None:
    children = {MERGED: [RIGHT, LEFT]}
    assert read(log, SPLIT, token=LEFT) == [(30, 1), (40, "00000000", children)]
    assert read(log, SPLIT, token=RIGHT) == [(31, 1), (40, "00000000", children)]


def test_all_partitions_are_read_in_one_query_and_children_after_their_parents(log: LogBuilder) -> None:
    split, merge = {LEFT: [ROOT], RIGHT: [ROOT]}, {MERGED: [RIGHT, LEFT]}
    found = read(log, 0, token="ALL")
    assert found == [
        (0, "00000000", {ROOT: []}), (1, 1, 2), (5, 2), (5, 1), (12, 1), (21, 1),
        (30, "00000000", split), (30, 1), (31, 1), (40, "00000000", merge), (40, "00000000", merge), (45, 1),
        (54.999999, "beat"),
    ]  # fmt: skip
    assert read(log, 12, SPLIT, "all") == [(12, "00000000", {ROOT: []}), (12, 1), (21, 1), *found[6:8]]
    begun = [(30, f"{number:08d}", {token: []}) for number, token in enumerate(sorted((LEFT, RIGHT)))]
    assert read(log, SPLIT, MERGE - 1, "ALL") == [*begun, (30, 1), (31, 1), (39, "beat")]
    with pytest.raises(OutOfRange, match="is known after a capture later than that; now, up to"):
        frame_of(log, 55.000001, token="ALL")


def test_a_record_at_the_end_of_a_partition_is_its_childs(log: LogBuilder) -> None:
    """LEFT has one at the time of the split."""
    assert read(log, SPLIT, token=ROOT)[0][1] == "00000000"
    assert read(log, SPLIT, SPLIT, LEFT) == [(30, 1)]


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        (1, 5, [(1, 1, 2), (5, 2), (5, 1)]),
        (5, 5, [(5, 2), (5, 1)]),
        (2, 2, [(2, "beat")]),
        (12, 13, [(12, 1), (13, "beat")]),
        (22, SPLIT - 0.000001, [(29.999999, "beat")]),
        (22, SPLIT, [(30, "00000000", {LEFT: [ROOT], RIGHT: [ROOT]})]),
    ],
)
def test_both_ends_of_a_question_are_inclusive(log: LogBuilder, start: float, end: float, found: list[Any]) -> None:
    assert read(log, start, end, ROOT) == found


def test_without_an_end_it_is_read_up_to_what_the_store_has_published(log: LogBuilder) -> None:
    assert read(log, MERGE, token=MERGED) == [(45, 1), (54.999999, "beat")]
    assert read(log, MERGE, 60, MERGED) == [(45, 1), (54.999999, "beat")]


def test_a_log_that_is_further_than_the_store_is_read_as_far_as_it_goes(log: LogBuilder) -> None:
    frame = read_change_stream(
        log.spark,
        log.stream(44),
        now=at(60),
        start_timestamp=at(46),
        partition_token=MERGED,
        heartbeat_milliseconds=1000,
    )
    assert (
        seconds(frame.collect()[-1][0][0]["heartbeat_record"][0]["timestamp"].astimezone(UTC).isoformat()) == 49.999999
    )


def test_what_is_not_captured_yet_is_not_answered(log: LogBuilder) -> None:
    assert read(log, 56, token=MERGED) == []
    assert set(read(log, 55)[0][2]) == {MERGED}
    with pytest.raises(OutOfRange, match="is known after a capture later than that; now, up to"):
        frame_of(log, 55.000001)  # the next batch may end MERGED at 55.0000005, say
    assert set(read(log, 50, stream=log.stream(44))[0][2]) == {MERGED}  # the log knows more than the store


def test_without_a_token_the_partitions_then_are_one_a_row(log: LogBuilder) -> None:
    for start, tokens in ((29.9, [ROOT]), (SPLIT, [LEFT, RIGHT]), (MERGE, [MERGED])):
        listed = enumerate(sorted(tokens))
        assert read(log, start) == [(start, f"{number:08d}", {token: []}) for number, token in listed]


def test_heartbeats_stand_where_no_record_was_and_not_too_often(spark: SparkSession, tmp_path: Path) -> None:
    log = LogBuilder(spark, tmp_path).create().partition(ROOT, 0)
    for number in range(1, 9):
        if number in (3, 6):
            log.record(ROOT, number - 0.5)
        log.commit(number)

    def beats(start: float, milliseconds: int) -> list[float]:
        frame = read(log, start, 8, ROOT, heartbeat_milliseconds=milliseconds)
        return [one[0] for one in frame if one[1] == "beat"]

    assert beats(0, 1000) == [1, 2, 4, 5, 7, 8]
    assert beats(0, 2000) == [2, 8]
    assert beats(0.25, 2000) == [2.25, 8]
    assert beats(0, 300_000) == [8]


def test_of_all_partitions_a_heartbeat_says_that_none_has_a_record(spark: SparkSession, tmp_path: Path) -> None:
    log = LogBuilder(spark, tmp_path).create().partition(LEFT, 0, hi=9).partition(RIGHT, 0, lo=9)
    log.commit(1).record(LEFT, 1.5).commit(2).commit(3).record(RIGHT, 3.5).commit(4).commit(5)

    def beats(token: str) -> list[float]:
        return [one[0] for one in read(log, 0, 5, token, heartbeat_milliseconds=1000) if one[1] == "beat"]

    assert (beats(LEFT), beats(RIGHT), beats("ALL")) == ([1, 3, 4, 5], [1, 2, 3, 5], [1, 3, 5])


def test_json_has_one_key_and_values_that_are_json(log: LogBuilder) -> None:
    def lines(*question: Any) -> list[dict[str, Any]]:
        frame = frame_of(log, *question, as_json=True)
        assert frame.columns == [CHANGE_RECORD]
        return [json.loads(row[0]) for row in frame.collect()]

    data, beat = lines(1, 2, ROOT)
    record = data.pop("data_change_record")
    assert data == {}
    assert record["commit_timestamp"] == "2026-05-01T00:00:01.000000Z"
    assert record["column_types"][0] == {
        "name": "id",
        "type": {"code": "INT64"},
        "is_primary_key": True,
        "ordinal_position": 1,
    }
    assert record["mods"] == [
        {"keys": {"id": str(key)}, "new_values": {"v": f"n{key}"}, "old_values": {}} for key in (1, 2)
    ]
    assert (record["mod_type"], record["number_of_records_in_transaction"], record["is_system_transaction"]) == (
        "INSERT",
        1,
        False,
    )
    assert beat == {"heartbeat_record": {"timestamp": "2026-05-01T00:00:02.000000Z"}}
    (child,) = lines(0)
    assert child["child_partitions_record"]["child_partitions"] == [{"token": ROOT, "parent_partition_tokens": []}]


def test_times_do_not_depend_on_the_sessions_zone(log: LogBuilder) -> None:
    other = log.spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "America/New_York")
    elsewhere = LogBuilder(other, log.path)
    assert read(elsewhere, 0, 13, ROOT) == read(log, 0, 13, ROOT)
    texts = [[row[0] for row in frame_of(each, 0, 13, ROOT, as_json=True).collect()] for each in (log, elsewhere)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("error", "text", "given"),
    [
        (InvalidArgument, "start_timestamp must not be null", {"start": None}),
        (OutOfRange, "too far in the past", {"start": -1}),
        (OutOfRange, "too far in the future", {"start": 661}),
        (InvalidArgument, "start_timestamp must be <= end_timestamp", {"end": 0.5}),
        (InvalidArgument, "heartbeat_milliseconds must not be null", {"heartbeat_milliseconds": None}),
        (OutOfRange, "heartbeat_milliseconds must be within", {"heartbeat_milliseconds": 100}),
        (Unimplemented, "read_options must be null", {"read_options": []}),
        (InvalidArgument, "not a literal or parameter", {"heartbeat_milliseconds": "(SELECT 1000)"}),
        (PartitionTokenInvalid, "partition_token is invalid", {"token": "no"}),
        (PartitionTokenInvalid, "partition_token is invalid", {"token": make_token("s2", 0, 65_536, 0)}),
    ],
)
def test_a_bad_question_is_refused_before_the_log_is_looked_at(
    log: LogBuilder, error: type[TidemarkError], text: str, given: dict[str, Any]
) -> None:
    nowhere = LogBuilder(log.spark, Path("/nowhere"), batch=1)
    with pytest.raises(error) as raised:
        frame_of(nowhere, **{"start": 1, **given})
    assert type(raised.value) is error
    assert text in str(raised.value)


def test_a_bad_token_is_refused_by_what_the_log_says(log: LogBuilder) -> None:
    with pytest.raises(PartitionTokenInvalid, match="partition_token is invalid"):
        frame_of(log, 1, token=make_token("s1", 0, 65_536, 77))
    for start, token in ((30.5, ROOT), (29, LEFT)):
        with pytest.raises(OutOfRange, match="invalid for the partition"):
            frame_of(log, start, token=token)
    late = {"now": at(86_400 + 35)}
    with pytest.raises(PartitionExpired, match="This partition is no longer valid"):
        frame_of(log, 36, token=ROOT, **late)
    assert read(log, 36, token=LEFT, **late)


def test_a_stream_without_a_log_was_dropped_or_never_captured(spark: SparkSession, tmp_path: Path) -> None:
    log = LogBuilder(spark, tmp_path / "none")
    with pytest.raises(OutOfRange, match="nothing of the change stream s was captured yet"):
        frame_of(log, 1)
    log.batch = 3
    with pytest.raises(ChangeStreamNotFound, match="Change Stream not found"):
        frame_of(log, 1)


@pytest.mark.parametrize("made", [False, True], ids=["no log", "a log without a batch"])
def test_before_the_first_batch_the_partitions_of_the_store_are_read(
    spark: SparkSession, tmp_path: Path, made: bool
) -> None:
    """The first capture makes the log table before it appends."""
    log = LogBuilder(spark, tmp_path / "log")
    if made:
        log.create()
    first = first_partitions("s1", log.begin, 2)
    assert [row[2] for row in read(log, 0, stream=log.stream(), first=first)] == [{one.token: []} for one in first]
    assert read(log, 0, token=first[0].token, stream=log.stream(), first=first) == []


def test_only_the_files_of_the_partition_and_the_time_are_read(log: LogBuilder) -> None:
    """Beside the rows on partitions and windows."""
    places = {Path(name).parent.name for name in frame_of(log, 11, 13, ROOT).inputFiles()}
    assert places - {"partition_token=_"} == {f"partition_token={ROOT}"}
    of_data = [name for name in frame_of(log, 11, 13, ROOT).inputFiles() if ROOT in name]
    assert len(set(of_data)) == 1
