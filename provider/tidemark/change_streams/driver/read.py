"""Reading a change stream's log: flat rows, data change records, and the rows of READ_<stream>."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from tidemark.change_streams.driver.change_records import (
    child_records,
    data_records,
    ends_of_partitions,
    heartbeat_records,
    in_order,
)
from tidemark.change_streams.driver.log_rows import LogRows
from tidemark.change_streams.driver.records import assembled, record_columns
from tidemark.change_streams.model.change_streams import ChangeStream, Partition, Position
from tidemark.change_streams.planning.reading import (
    ReadRange,
    ReadRequest,
    ask_to_read,
    plan_read,
    plan_read_of_all,
    require_captured,
    require_kept,
)
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

    A batch read does not wait: it ends with the last captured record. Unless the partition ended before, the last row
    is a heartbeat with the time until which is captured. A `start_timestamp` later than that gets no rows for a token.
    Without a token it is OutOfRange, as the next capture may end any partition before it. With the token "ALL" the
    partitions that exist at the start are reported first. The records of all partitions follow, children after their
    parents. `options` are those of the storage. `first` has the partitions that the store knows, for a change stream
    whose first capture is still to come. Lazy, and pinned to the log of now; a second call sees more. Raises, before
    any row is read, what `ask_to_read` and `plan_read` do, ChangeStreamNotFound.
    """
    request = ask_to_read(
        stream,
        now=now,
        start_timestamp=start_timestamp,
        end_timestamp=end_timestamp,
        partition_token=partition_token,
        heartbeat_milliseconds=heartbeat_milliseconds,
        read_options=read_options,
    )
    log = log_of(spark, stream, LogRows.pinned, options, first)
    reader = _Reader(spark, log, stream, first, as_json)
    read = (
        reader.all_partitions
        if request.of_all
        else reader.partitions_at_start
        if request.token is None
        else reader.partition
    )
    return in_order(reduce(DataFrame.unionByName, read(request)))


@dataclass(frozen=True)
class _Reader:
    """The parts of an answer to each kind of question, in no order."""

    spark: SparkSession
    log: LogRows
    stream: ChangeStream
    first: Sequence[Partition]
    as_json: bool

    def partitions_at_start(self, request: ReadRequest) -> list[DataFrame]:
        require_captured(request.start, self.log.captured_until(request.start, self.stream.published_until))
        require_kept(request.start, self.log.expired_until())
        return [self._open_at(request.start)]

    def all_partitions(self, request: ReadRequest) -> list[DataFrame]:
        asked = plan_read_of_all(request, self.log.captured_until(None, self.stream.published_until))
        require_kept(request.start, self.log.expired_until())
        return [self._open_at(request.start), ends_of_partitions(self.log, asked, self.as_json), *self._in_time(asked)]

    def partition(self, request: ReadRequest) -> list[DataFrame]:
        assert request.token is not None
        about = self.log.about(request.token, self.stream.published_until)
        known = [one for one in self.first if one.token == request.token]  # the log is made before its first batch
        asked = plan_read(request, about.family or known, about.captured_until, about.expired_until)
        parts = self._in_time(asked)
        if asked.ended:
            parts.append(self._children(asked.ended, [asked.children]))
        return parts or [self._children(request.start, [])]

    def _in_time(self, asked: ReadRange) -> list[DataFrame]:
        """The data and the heartbeats of a range."""
        if asked.until <= asked.start:
            return []
        rows = self.log.data(asked.token, Position(asked.start), Position(asked.until))
        return [data_records(rows, self.as_json), heartbeat_records(self.log, asked, self.as_json)]

    def _open_at(self, time: datetime) -> DataFrame:
        found = self.log.open_at(time) or [one for one in self.first if one.start <= time]
        return self._children(time, [[replace(one, parents=())] for one in found])

    def _children(self, time: datetime, records: Iterable[Iterable[Partition]]) -> DataFrame:
        return child_records(self.spark, time, records, self.as_json)


def log_of(
    spark: SparkSession,
    stream: ChangeStream,
    open_log: Callable[[SparkSession, str, Mapping[str, str] | None], LogRows],
    options: Mapping[str, str] | None,
    first: Sequence[Partition],
) -> LogRows:
    """The stream's log by `open_log`. Raises ChangeStreamNotFound if it is gone, OutOfRange if there is none yet and no
    partition of it is known.
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

    The log is read as it is now, whenever that is evaluated. Raises PartitionExpired if retention may have removed rows
    of the range, TableNotFound.
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
