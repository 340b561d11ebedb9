"""READ_<stream>(…) and read_json_<stream>(…) in SQL answer as read_change_stream does, and refuse what it refuses."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.engine.change_streams.log_builder import LogBuilder
from tests.tiers import some_rows
from tidemark.change_streams.driver.functions import register_read_functions
from tidemark.change_streams.driver.read import read_change_stream
from tidemark.change_streams.planning.tokens import first_partitions, make_token
from tidemark.errors import ChangeStreamNotFound

pytestmark = pytest.mark.spark

ROOT, LEFT, RIGHT = make_token("s1", 0, 65_536, 0), make_token("s1", 0, 9, 2), make_token("s1", 9, 65_536, 2)
NOW = datetime(2020, 5, 1, 12, tzinfo=UTC)  # the clock that is given, and not that of Spark
HOUR = 3600.0


@pytest.fixture(scope="module")
def log(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> LogBuilder:
    """Begun two hours ago; a split an hour later."""
    made = LogBuilder(spark.newSession(), tmp_path_factory.mktemp("log"), begin=NOW - timedelta(hours=2)).create()
    made.partition(ROOT, 0).record(ROOT, 1, [1, 2]).record(ROOT, 5, [1], 1, "UPDATE").commit(10)
    for second in range(20, 60, 10):
        made.commit(second)
    made.partition(RIGHT, HOUR, ROOT, lo=9).partition(LEFT, HOUR, ROOT, hi=9).record(ROOT, 3000).commit(HOUR)
    made.record(LEFT, HOUR).commit(HOUR + 10)
    register_read_functions(made.spark, made.stream(HOUR + 20), now=NOW)
    return made


def called(log: LogBuilder, function: str, *args: Any, **named: Any) -> str:
    texts = [literal(log, value) for value in args]
    texts += [f"{name} => {literal(log, value)}" for name, value in named.items()]
    return f"SELECT * FROM {function}({', '.join(texts)})"


def literal(log: LogBuilder, value: Any) -> str:
    if isinstance(value, float):
        return f"TIMESTAMP '{log.at(value).isoformat()}'"
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


@pytest.mark.parametrize(
    ("start", "end", "token", "beat"),
    some_rows(
        [
            (0.0, None, None, 1000),
            (HOUR, None, None, 1000),
            (0.0, None, ROOT, 10_000),
            (1.0, 50.0, ROOT, 10_000),
            (2.0, 2.0, ROOT, 1000),
            (HOUR, None, ROOT, 300_000),
            (HOUR, 2 * HOUR, LEFT, 1000),
            (HOUR + 60, None, RIGHT, 1000),
            (0.0, None, "ALL", 10_000),
            (5.0, HOUR, "all", 1000),
            (HOUR, 2 * HOUR, "ALL", 300_000),
        ],
        now=[(0.0, None, None, 1000)],
    ),
)
def test_sql_and_python_answer_the_same(
    log: LogBuilder, start: float, end: float | None, token: str | None, beat: int
) -> None:
    for name, as_json in (("READ_s", False), ("read_json_s", True)):
        found = log.spark.sql(called(log, name, start, end, token, beat))
        expected = read_change_stream(
            log.spark,
            log.stream(HOUR + 20),
            now=NOW,
            start_timestamp=log.at(start),
            end_timestamp=None if end is None else log.at(end),
            partition_token=token,
            heartbeat_milliseconds=beat,
            as_json=as_json,
        )
        assert found.schema.simpleString() == expected.schema.simpleString()
        assert found.collect() == expected.collect()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("INVALID_ARGUMENT: start_timestamp must not be null", {"start_timestamp": None}),
        ("OUT_OF_RANGE: start_timestamp is too far in the past", {"start_timestamp": -1.0}),
        ("OUT_OF_RANGE: start_timestamp is too far in the future", {"start_timestamp": 4 * HOUR}),
        ("is known after a capture later than that", {"start_timestamp": HOUR + 21}),
        ("is known after a capture later than that", {"start_timestamp": HOUR + 21, "partition_token": "ALL"}),
        ("INVALID_ARGUMENT: start_timestamp must be <= end_timestamp", {"end_timestamp": 0.5}),
        ("INVALID_ARGUMENT: heartbeat_milliseconds must not be null", {"heartbeat_milliseconds": None}),
        ("OUT_OF_RANGE: heartbeat_milliseconds must be within", {"heartbeat_milliseconds": 999}),
        ("UNIMPLEMENTED: read_options must be null", {"read_options": []}),
        ("INVALID_ARGUMENT: partition_token is invalid", {"partition_token": "no"}),
        ("OUT_OF_RANGE: start_timestamp is invalid for the partition", {"partition_token": LEFT}),
    ],
)
def test_what_is_wrong_fails_the_query_also_where_there_is_no_row(
    log: LogBuilder, text: str, named: dict[str, Any]
) -> None:
    statement = called(log, "READ_s", **{"start_timestamp": 1.0, "heartbeat_milliseconds": 1000, **named})
    statement = statement.replace("[]", "array()")
    with pytest.raises(PySparkException, match="USER_RAISED_EXCEPTION") as raised:
        log.spark.sql(statement).collect()
    assert text in str(raised.value)


def test_what_is_wrong_fails_the_query_also_where_rows_are_only_counted(log: LogBuilder) -> None:
    statement = called(log, "READ_s", 1.0, 0.5, heartbeat_milliseconds=1000).replace("*", "count(*)")
    with pytest.raises(PySparkException, match="start_timestamp must be <= end_timestamp"):
        log.spark.sql(statement).collect()


def test_a_partition_that_is_too_old_is_no_longer_valid(spark: SparkSession, tmp_path: Path) -> None:
    log = LogBuilder(spark.newSession(), tmp_path, begin=NOW - timedelta(days=3)).create().partition(ROOT, 0)
    log.partition(LEFT, HOUR, ROOT, hi=9).partition(RIGHT, HOUR, ROOT, lo=9).commit(HOUR)
    register_read_functions(log.spark, log.stream(HOUR), now=NOW)
    with pytest.raises(PySparkException, match="This partition is no longer valid"):
        log.spark.sql(called(log, "READ_s", 60 * HOUR, partition_token=ROOT, heartbeat_milliseconds=1000)).collect()


def test_who_follows_heartbeats_is_not_ahead_whatever_the_clocks_say(spark: SparkSession, tmp_path: Path) -> None:
    log = LogBuilder(spark.newSession(), tmp_path, begin=NOW - timedelta(hours=1)).create().partition(ROOT, 0)
    register_read_functions(log.spark, log.commit(3 * HOUR).stream(HOUR), now=NOW)
    text = called(log, "read_json_s", 3 * HOUR - 5, partition_token=ROOT, heartbeat_milliseconds=300_000)
    assert ["heartbeat_record" in row[0] for row in log.spark.sql(text).collect()] == [True]


def test_a_function_sees_what_is_captured_after_it_was_made(spark: SparkSession, tmp_path: Path) -> None:
    log = LogBuilder(spark.newSession(), tmp_path, begin=NOW - timedelta(hours=1)).create().partition(ROOT, 0).commit(1)
    register_read_functions(log.spark, log.stream(1), now=NOW)
    text = called(log, "read_json_s", 0.0, partition_token=ROOT, heartbeat_milliseconds=300_000)
    assert ["data" in row[0] for row in log.spark.sql(text).collect()] == [False]
    log.record(ROOT, 2).commit(10)
    records = [json.loads(row[0]) for row in log.spark.sql(text).collect()]
    assert [next(iter(one)) for one in records] == ["data_change_record", "heartbeat_record"]


def test_only_the_files_of_the_token_and_the_time_are_read(log: LogBuilder) -> None:
    frame = log.spark.sql(called(log, "READ_s", 2900.0, 3100.0, ROOT, 1000))
    data = {name for name in frame.inputFiles() if "partition_token=_/" not in name}
    assert len(data) == 1
    assert all(f"partition_token={ROOT}" in name for name in data)


def test_arguments_may_be_session_variables(log: LogBuilder) -> None:
    for name, kind, value in (("since", "TIMESTAMP", literal(log, HOUR)), ("whose", "STRING", literal(log, LEFT))):
        log.spark.sql(f"DECLARE OR REPLACE VARIABLE {name} {kind} DEFAULT {value}")
    text = "SELECT * FROM READ_s(since, partition_token => whose, heartbeat_milliseconds => 300000)"
    assert len(log.spark.sql(text).collect()) == 2


@pytest.mark.parametrize("made", [False, True], ids=["no log", "a log without a batch"])
def test_before_the_first_capture_the_partitions_of_the_store_are_read(
    spark: SparkSession, tmp_path: Path, made: bool
) -> None:
    log = LogBuilder(spark.newSession(), tmp_path / "none", begin=NOW - timedelta(hours=1))
    if made:
        log.create()
    first = first_partitions("s1", log.begin, 2)
    register_read_functions(log.spark, log.stream(), now=NOW, first=first)
    text = called(log, "read_json_s", 0.0, heartbeat_milliseconds=1000)
    records = [json.loads(row[0])["child_partitions_record"] for row in log.spark.sql(text).collect()]
    assert {one["child_partitions"][0]["token"] for one in records} == {one.token for one in first}
    gone = LogBuilder(log.spark, tmp_path / "gone", begin=log.begin, batch=3)
    with pytest.raises(ChangeStreamNotFound):
        register_read_functions(log.spark, gone.stream(), now=NOW, first=first)
