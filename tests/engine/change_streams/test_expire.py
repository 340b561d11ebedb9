"""Retention: whole batches leave the log, the rest stays readable, and no reader takes a gap for quiet."""

from __future__ import annotations

from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.engine.change_streams.log_builder import LogBuilder, at
from tidemark.change_streams.driver.expire import expire_change_log
from tidemark.change_streams.driver.functions import register_read_functions
from tidemark.change_streams.driver.log_table import EXPIRED_TOKEN, META_TOKEN, TOKEN_COLUMN
from tidemark.change_streams.driver.read import read_change_stream, read_mods, read_records
from tidemark.change_streams.model.change_streams import Position
from tidemark.change_streams.model.jobs import ExpiredRows
from tidemark.change_streams.planning.tokens import make_token
from tidemark.errors import OutOfRange, PartitionExpired

pytestmark = pytest.mark.spark

TOKEN = make_token("s1", 0, 65_536, 0)
DAY = 86_400.0


@pytest.fixture
def log(spark: SparkSession, tmp_path: Path) -> LogBuilder:
    """Batches until 10, 20, 30 s of two rows each."""
    made = LogBuilder(spark, tmp_path / "log").create().partition(TOKEN, 0)
    for until in (10, 20, 30):
        made.record(TOKEN, until - 8, [1]).record(TOKEN, until - 2, [2]).commit(until)
    return made


def expire(log: LogBuilder, seconds: float) -> ExpiredRows:
    """A day after that second."""
    return expire_change_log(log.spark, log.stream(30), now=at(DAY + seconds))


def left(log: LogBuilder) -> dict[str, int]:
    table = log.spark.read.format("delta").load(str(log.path))
    return {row["record_type"]: row["count"] for row in table.groupBy("record_type").count().collect()}


def read(log: LogBuilder, start: float, **given: Any) -> int:
    usual = {"now": at(DAY + 15), "start_timestamp": at(start), "partition_token": TOKEN}
    return read_change_stream(
        log.spark, log.stream(30), **{**usual, "heartbeat_milliseconds": 300_000, **given}
    ).count()


def test_only_batches_that_are_over_as_a_whole_leave(log: LogBuilder) -> None:
    assert expire(log, 9.9) == ExpiredRows(None)
    before = left(log)
    assert expire(log, 19.9) == ExpiredRows(at(10), 3)
    assert left(log) == {**before, "data": 4, "window": 2, "expired": 1}
    table = log.spark.read.format("delta").load(str(log.path)).where("record_type != 'data'")
    assert {row[0] for row in table.select(TOKEN_COLUMN).distinct().collect()} == {META_TOKEN, EXPIRED_TOKEN}
    assert read(log, 15) == 4  # the record at 18 s, two of the last batch, and a heartbeat


def test_a_second_run_finds_nothing_and_a_later_one_goes_on(log: LogBuilder) -> None:
    expire(log, 10)
    found = left(log)
    assert expire(log, 11) == ExpiredRows(at(10), 0)
    assert left(log) == found
    assert expire(log, 20) == ExpiredRows(at(20), 4)
    assert left(log) == {"partition": 1, "data": 2, "window": 1, "expired": 1}


def test_of_the_newest_batch_the_window_stays(log: LogBuilder) -> None:
    assert expire(log, 1000).until == at(30)
    assert left(log) == {"partition": 1, "window": 1, "expired": 1}
    assert expire(log, 1001) == ExpiredRows(at(30), 0)


def test_a_run_that_was_broken_off_between_mark_and_removal_is_finished_by_the_next(log: LogBuilder) -> None:
    def stop_later(times: list[int]) -> None:
        times.append(1)
        if len(times) == 2:
            raise InterruptedError

    times: list[int] = []
    with pytest.raises(InterruptedError):
        expire_change_log(log.spark, log.stream(30), now=at(DAY + 12), go_on=lambda: stop_later(times))
    assert left(log)["data"] == 6
    assert expire(log, 12) == ExpiredRows(at(10), 3)
    assert left(log)["expired"] == 1


def test_what_has_expired_is_an_error_to_every_reader_and_never_silence(log: LogBuilder) -> None:
    chunk = (TOKEN, Position(at(2)), Position(at(25)))
    early = read_records(log.spark, str(log.path), *chunk)
    expire(log, 12)
    assert early.count() == 5  # planned before, and the files are still there
    for reader in (read_mods, read_records):
        with pytest.raises(PartitionExpired, match="This partition is no longer valid"):
            reader(log.spark, str(log.path), *chunk)
    assert read_records(log.spark, str(log.path), TOKEN, Position(at(10)), Position(at(25))).count() == 3
    for token in (TOKEN, None):
        with pytest.raises(OutOfRange, match="too far in the past"):
            read(log, 2, partition_token=token, now=at(DAY))
    log.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    log.spark.sql(f"VACUUM delta.`{log.path}` RETAIN 0 HOURS")
    log.spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    with pytest.raises(Exception, match=r"FILE_NOT_EXIST|FileNotFound|does not exist"):
        early.collect()


def test_what_an_earlier_release_trimmed_has_expired_as_well(log: LogBuilder) -> None:
    log.row("_trimmed", record_type="trimmed", commit_timestamp=at(10)).commit(40)
    for token in (TOKEN, None, "ALL"):
        with pytest.raises(OutOfRange, match="too far in the past"):
            read(log, 2, partition_token=token, now=at(DAY))
    with pytest.raises(PartitionExpired):
        read_mods(log.spark, str(log.path), TOKEN, Position(at(2)), Position(at(25)))
    register_read_functions(log.spark, log.stream(40), now=at(DAY))
    with pytest.raises(PySparkException, match="too far in the past"):
        log.spark.sql(f"SELECT * FROM READ_s('{at(2).isoformat()}', NULL, '{TOKEN}', 1000)").collect()
    assert expire(log, 9) == ExpiredRows(at(10))
    assert expire(log, 20) == ExpiredRows(at(20), 7)
    assert left(log) == {"partition": 1, "data": 2, "window": 2, "expired": 1}


def test_batches_may_be_appended_meanwhile(log: LogBuilder) -> None:
    """Whichever comes first, neither is lost."""
    other = LogBuilder(log.spark.newSession(), log.path, batch=3)

    def append() -> None:
        for until in (40, 50, 60):
            other.record(TOKEN, until - 5).commit(until)

    thread = Thread(target=append)
    thread.start()
    expire(log, 12)
    expire(log, 22)
    thread.join()
    assert expire(log, 22).rows == 0
    assert left(log) == {"partition": 1, "data": 5, "window": 4, "expired": 1}


def test_a_log_that_is_not_there_has_nothing_to_remove(spark: SparkSession, tmp_path: Path) -> None:
    log = LogBuilder(spark, tmp_path / "none")
    assert expire_change_log(spark, log.stream(), now=at(DAY)) == ExpiredRows(None)
