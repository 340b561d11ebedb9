"""Reading a change stream's log: flat rows, data change records, and the rows of READ_<stream> (partitions.md 1.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from tidemark.change_streams.driver.change_records import child_records, data_records, heartbeat_records, in_order
from tidemark.change_streams.driver.log_rows import LogRows
from tidemark.change_streams.driver.records import assembled, record_columns
from tidemark.change_streams.model.change_streams import ChangeStream, Partition, Position
from tidemark.change_streams.planning.reading import ask_to_read, plan_read, require_captured, require_kept
from tidemark.errors import ChangeStreamNotFound, OutOfRange, PartitionExpired, TableNotFound

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["log_of", "read_change_stream", "read_mods", "read_records"]


def read_change_stream(
    spark: SparkSession,
    stream: ChangeStream,
    *,
    now: datetime,
    start_timestamp: datetime | None,
    end_timestamp: datetime | None = None,
    partition_token: str | None = None,
    heartbeat_milliseconds: int | None,
    read_options: object = None,
    as_json: bool = False,
    options: Mapping[str, str] | None = None,
    first: Sequence[Partition] = (),
) -> DataFrame:
    """READ_<stream>: one column ChangeRecord, in order; with `as_json` a JSON object a row.

    A batch read does not wait: it ends with what is captured, and unless the partition ended before, its last row is a
    heartbeat that says up to where that is. A `start_timestamp` later than that gets no rows for a token; without one
    it is OutOfRange, as the next capture may end any partition before it. `options` are those of the storage; `first`
    the partitions that the store knows, for a change stream whose first capture is still to come. Lazy, and pinned to
    the log of now; a second call sees more. Raises, before any row is read, what `ask_to_read` and `plan_read` do,
    ChangeStreamNotFound.
    """
    ask = ask_to_read(
        stream,
        now=now,
        start_timestamp=start_timestamp,
        end_timestamp=end_timestamp,
        partition_token=partition_token,
        heartbeat_milliseconds=heartbeat_milliseconds,
        read_options=read_options,
    )
    log = log_of(spark, stream, LogRows.pinned, options, first)
    if ask.token is None:
        require_captured(ask.start, log.captured_until(ask.start, stream.published_until))
        require_kept(ask.start, log.expired_until())
        found = log.open_at(ask.start) or [one for one in first if one.start <= ask.start]
        return in_order(child_records(spark, ask.start, [[replace(one, parents=())] for one in found], as_json))
    about = log.about(ask.token, stream.published_until)
    family = about.family or [one for one in first if one.token == ask.token]  # the log is made before its first batch
    asked = plan_read(ask, family, about.captured_until, about.expired_until)
    parts = []
    if asked.until > asked.start:
        parts.append(data_records(log.data(asked.token, Position(asked.start), Position(asked.until)), as_json))
        parts.append(heartbeat_records(log, asked, as_json))
    if asked.ended:
        parts.append(child_records(spark, asked.ended, [asked.children], as_json))
    return in_order(reduce(DataFrame.unionByName, parts) if parts else child_records(spark, ask.start, [], as_json))


def log_of(
    spark: SparkSession,
    stream: ChangeStream,
    open_log: Callable[[SparkSession, str, Mapping[str, str] | None], LogRows],
    options: Mapping[str, str] | None,
    first: Sequence[Partition],
) -> LogRows:
    """The stream's log by `open_log`. Raises ChangeStreamNotFound where it is gone, OutOfRange where there is none yet
    and no partition of it is known.
    """
    try:
        return open_log(spark, stream.log_path, options)
    except TableNotFound as error:
        if stream.next_batch > 0:
            raise ChangeStreamNotFound(stream=stream.name, known="(its log is gone)") from error
        if not first:
            problem = f"nothing of the change stream {stream.name} was captured yet; capture, and ask again"
            raise OutOfRange(argument="published_until", value=stream.published_until, problem=problem) from error
        return LogRows.before_capture(spark, first)


def read_mods(
    spark: SparkSession,
    log_path: str,
    token: str,
    start: Position,
    end: Position,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The log's rows of the modifications in [start, end) of a token: LOG_COLUMNS, in no order. Lazy.

    The log is read as it is now, whenever that is evaluated. Raises PartitionExpired where retention may have removed
    rows of the range, TableNotFound.
    """
    log = LogRows.pinned(spark, log_path, options)
    expired = log.expired_until()
    if expired is not None and start.at < expired:
        problem = f"records before {expired} were removed as their retention was over"
        raise PartitionExpired(argument="start", value=start.at, problem=problem)
    return log.data(token, start, end)


def read_records(
    spark: SparkSession,
    log_path: str,
    token: str,
    start: Position,
    end: Position,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The data change records in [start, end) of a token, one row each: RECORD_COLUMNS, sorted by position. Lazy.

    Both bounds are places of records, so that none is cut. Otherwise as `read_mods`.
    """
    rows = read_mods(spark, log_path, token, start, end, options)
    return assembled(rows).sort("commit_timestamp", "record_sequence").select(*record_columns())
