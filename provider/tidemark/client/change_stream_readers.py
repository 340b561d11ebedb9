"""Capture, and the readers of change streams, from a notebook."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidemark.change_streams.driver.printed_records import printed_in_lines
from tidemark.change_streams.driver.read import read_change_stream
from tidemark.change_streams.driver.reassembly import read_transactions
from tidemark.change_streams.model.change_streams import CaptureResult, ConsumerGroup, GroupStatus
from tidemark.change_streams.model.partition_table import PartitionTable, short_token
from tidemark.change_streams.model.sinks import Sink
from tidemark.change_streams.planning.starts import start_of
from tidemark.change_streams.worker import groups, waves
from tidemark.change_streams.worker.capture import capture
from tidemark.change_streams.worker.defining import open_partitions
from tidemark.change_streams.worker.definitions import get_change_stream
from tidemark.change_streams.worker.partition_statuses import list_partitions
from tidemark.change_streams.worker.reading import read_chunks
from tidemark.change_streams.worker.retention import LogExpired, expire
from tidemark.change_streams.worker.sinks import request_sink, require_target
from tidemark.change_streams.worker.watching import find_new_tables
from tidemark.client.context import ClientContext
from tidemark.client.lake_tables import lake_tables
from tidemark.client.points import as_moment
from tidemark.errors import InvalidArgument, NotADeltaTable, TableNotFound, TargetNotDelta, TargetNotFound
from tidemark.model.statements import TransactionKey
from tidemark.model.streams import TableRef
from tidemark.streams.planning.bounds import Bound
from tidemark.streams.worker.runtime import Runtime

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Consumed", "ReadersOfChangeStreams"]

SinkFunction = Callable[["DataFrame", Any], Any]
"""A function that gets the records of a chunk, and the facts of the chunk."""


@dataclass(frozen=True)
class Consumed:
    """The result of `consume_partitions`: chunks that were read, rows that the sink took, partitions that finished.

    `low_watermark`: all records before it are delivered. `left`: partitions with work, of a group that pauses.
    """

    chunks: int
    rows: int
    finished: tuple[str, ...]
    low_watermark: datetime
    left: int


class ReadersOfChangeStreams:
    """The part of `Lake` that captures change streams and reads them."""

    _context: ClientContext

    def capture(
        self,
        name: str,
        *,
        max_commits: int | None = None,
        max_rows: int | None = None,
        max_bytes: int | None = None,
        **limits: Any,
    ) -> CaptureResult | None:
        """Capture the commits of the watched tables since the last capture, as one batch of the change stream's log, by
        this Spark. None if nothing is new.

        `max_commits`, `max_rows`, `max_bytes`: bounds of the batch. `limits`: allowed_skew, split_rows, merge_rows. A
        second run takes what is new since; a batch that is open is done first, as it was written ahead. Raises
        ChangeStreamNotFound, WatchedTableChanged, KeyTwiceInTransaction. FOR ALL leaves tables that cannot be watched
        out with a warning in the log, and those that were dropped. A table that was renamed or moved is followed.
        """
        context = self._context
        return capture(
            context.runtime,
            name,
            new_tables=lambda stream, lost: find_new_tables(context.store, stream, lake_tables(context), lost=lost),
            bounds=Bound(max_commits=max_commits, max_rows=max_rows, max_bytes=max_bytes),
            **limits,
        )

    def expire_change_log(self, name: str, *, only_writer: bool = False) -> LogExpired:
        """Remove records that are older than the retention from the change stream's log, and their rows from the store.
        A job runs on this Spark if there are any. VACUUM of the log removes its files.

        A consumer group that has not read them finds PartitionExpired. A second run finds less to remove.
        `only_writer`: nothing is captured while it runs, as S3 needs without a log store that coordinates commits.
        Raises ChangeStreamNotFound, CommitsMayBeLost.
        """
        context = self._context
        return expire(context.runtime, name, only_writer=only_writer)

    def read_change_stream(
        self,
        name: str,
        *,
        start_timestamp: datetime | str | None,
        end_timestamp: datetime | str | None = None,
        partition_token: str | None = None,
        heartbeat_milliseconds: int | None = 10_000,
        read_options: object = None,
        as_json: bool = False,
    ) -> DataFrame:
        """The function `READ_<name>`: the ChangeRecords of a partition in [start, end]. Without a token they name the
        partitions that exist at start. With the token "ALL" the records of all partitions follow, children after their
        parents.

        Times are datetimes with a zone, or their ISO 8601 texts. It ends with what is captured, as a batch does not
        wait. The next read begins one microsecond after the last heartbeat or data change record. `as_json`: a JSON
        text a row, as `read_json_<name>`; otherwise `show`, and the rows that are collected, print each record in a
        line. Lazy. Raises, before rows are read, ChangeStreamNotFound, InvalidArgument, OutOfRange, PartitionExpired,
        PartitionTokenInvalid, Unimplemented.
        """
        context = self._context
        stream = get_change_stream(context.store, name)
        records = read_change_stream(
            context.spark,
            stream,
            now=context.store.clock(),
            start_timestamp=as_moment("start_timestamp", start_timestamp),
            end_timestamp=as_moment("end_timestamp", end_timestamp),
            partition_token=partition_token,
            heartbeat_milliseconds=heartbeat_milliseconds,
            read_options=read_options,
            as_json=as_json,
            options=context.options,
            first=open_partitions(context.store, stream),
        )
        if as_json:
            return records
        of = "partitions" if partition_token is None else f"partition {short_token(partition_token)}"
        until = "what is captured" if end_timestamp is None else end_timestamp
        return printed_in_lines(records, f"{stream.name}, {of}, from {start_timestamp} to {until}")

    def read_transactions(
        self,
        name: str,
        *,
        start_timestamp: datetime | str | None,
        end_timestamp: datetime | str | None = None,
        consumer_group: str | None = None,
        low_watermark: datetime | str | None = None,
        net: bool = False,
    ) -> DataFrame:
        """Transactions from all partitions, those in [start, end] below a low watermark: the given one, or that of a
        consumer group. Without either, all published transactions. The next question begins there. Times as in
        `read_change_stream`.

        One row each: commit_timestamp, server_transaction_id, transaction_tag, is_system_transaction,
        number_of_records_in_transaction, and `records` in their order. With `net` it has the net changes by key
        instead. A transaction must fit into a task's memory. Raises, before a row is handed out, TransactionIncomplete,
        ChangeStreamNotFound, ConsumerGroupNotFound, InvalidArgument, OutOfRange.
        """
        context = self._context
        if consumer_group is not None:
            if low_watermark is not None:
                problem = "give a consumer group, whose low watermark is taken, or a low watermark"
                raise InvalidArgument(argument="low_watermark", value=low_watermark, problem=problem)
            low_watermark = groups.group_status(context.store, name, consumer_group).low_watermark
        stream = get_change_stream(context.store, name)
        return read_transactions(
            context.spark,
            stream,
            now=context.store.clock(),
            start_timestamp=as_moment("start_timestamp", start_timestamp),
            end_timestamp=as_moment("end_timestamp", end_timestamp),
            low_watermark=as_moment("low_watermark", low_watermark),
            net=net,
            options=context.options,
            first=open_partitions(context.store, stream),
        )

    def change_stream_partitions(self, name: str, consumer_group: str | None = None) -> PartitionTable:
        """All partitions of a change stream, parents before children, a line each: token, keys, parents, children,
        state, start, end, watermark. With a consumer group: its states and its watermarks.

        Partitions that ended before what has expired are forgotten. Raises ChangeStreamNotFound, ConsumerGroupNotFound.
        """
        return list_partitions(self._context.store, name, consumer_group)

    def create_consumer_group(
        self, stream: str, group: str, *, start: datetime | str = "earliest", if_not_exists: bool = False
    ) -> ConsumerGroup:
        """Readers with their own progress, from a point on: a datetime with a zone, its ISO 8601 text, "earliest" or
        "now".

        With `if_not_exists` a second run changes nothing. Raises ChangeStreamNotFound, ConsumerGroupExists, OutOfRange,
        InvalidArgument.
        """
        return groups.create_group(self._context.store, stream, group, start_of("start", start), if_not_exists)

    def pause_consumer_group(self, stream: str, group: str) -> ConsumerGroup:
        """Hand nothing out to the group until it is resumed. Raises ChangeStreamNotFound, ConsumerGroupNotFound."""
        return groups.pause_group(self._context.store, stream, group)

    def resume_consumer_group(self, stream: str, group: str) -> ConsumerGroup:
        """Hand partitions out to the group again. Raises as `pause_consumer_group`."""
        return groups.resume_group(self._context.store, stream, group)

    def reset_consumer_group(self, stream: str, group: str, *, start: datetime | str) -> ConsumerGroup:
        """Let the group begin again at `start`: sinks get the records from there on again. Raises what
        `create_consumer_group` raises, and ConsumerGroupNotFound.
        """
        return groups.reset_group(self._context.store, stream, group, start_of("start", start))

    def describe_consumer_group(self, stream: str, group: str) -> GroupStatus:
        """Low watermark, lag, time until it expires, partitions by state. Raises as `pause_consumer_group`."""
        return groups.group_status(self._context.store, stream, group)

    def consumer_groups(self, stream: str) -> tuple[ConsumerGroup, ...]:
        """The groups of a change stream, by name. Raises ChangeStreamNotFound."""
        return groups.list_groups(self._context.store, stream)

    def drop_consumer_group(self, stream: str, group: str) -> ConsumerGroup:
        """End the group; what it delivered stays. Raises as `pause_consumer_group`."""
        return groups.drop_group(self._context.store, stream, group)

    def consume_partitions(
        self,
        stream: str,
        group: str,
        write_as: str | SinkFunction,
        *,
        target: str | None = None,
        table: str | None = None,
        keys: str | Sequence[str] = (),
        max_chunks: int = 64,
        max_rows: int = 1_000_000,
    ) -> Consumed:
        """Plan, read and commit, wave after wave, until nothing of what is captured is left for the group.

        `write_as`: append (each record a row of `target`), merge (the changes applied to `target`), or a function that
        gets (records, chunk). It is a function of a module, itself or as `module:function`. Each chunk reaches a table
        once, a function at least once, with the same bounds. `table`: only its records. `max_chunks`: of a wave,
        `max_rows`: of a chunk. A second run continues where the first one ended. Raises PartitionsFailed after the
        others were read, ChangeStreamNotFound, ConsumerGroupNotFound, PartitionExpired, TargetNotFound, TargetNotDelta,
        MissingMergeKey, InvalidArgument.
        """
        sink = _sink(self._context, stream, write_as, target=target, table=table, keys=keys)
        return _consume(self._context, stream, group, sink, max_chunks, max_rows)


def _consume(context: ClientContext, stream: str, group: str, sink: Sink, max_chunks: int, max_rows: int) -> Consumed:
    store = context.store
    key = TransactionKey("client", store.new_id(), "consume_partitions")
    run, chunks, rows = f"client/{key.run_id}", 0, 0
    finished: list[str] = []
    while True:
        wave = waves.plan_wave(store, stream, group, run=run, max_chunks=max_chunks, max_rows=max_rows)
        if wave.chunks:
            done = read_chunks(
                Runtime(store, run=context.run, paths=context.paths, tables=context.tables),
                wave.chunks,
                sink,
                run=run,
                key=key,
            )
            chunks, rows = chunks + done.chunks - len(done.failed), rows + done.rows
        moved = waves.commit_wave(store, stream, group, run=run)
        finished.extend(moved.finished)
        if not wave.chunks and not wave.moved_on and not moved.advanced:
            left = waves.finish(store, stream, group, run=run)
            return Consumed(chunks, rows, tuple(finished), moved.low_watermark, left)


def _sink(
    context: ClientContext,
    stream: str,
    write_as: str | SinkFunction,
    *,
    target: str | None,
    table: str | None,
    keys: str | Sequence[str],
) -> Sink:
    name = write_as if isinstance(write_as, str) else _name_of(write_as)
    asked = request_sink(context.store, stream, write_as=name, target=target, table=table, keys=keys)
    sink_table = None if asked.target is None else _target(context, asked.target)
    require_target(context.store, stream, sink_table, of_table=asked.table_id)
    return Sink(asked.kind, sink_table, asked.table_id, asked.keys, asked.function, asked.alone)


def _name_of(function: SinkFunction) -> str:
    """`module:function`, by which a job finds it."""
    name = getattr(function, "__qualname__", "")
    if not name.isidentifier():
        problem = "give a function at the top level of a module, so that a job can find it by its name"
        raise InvalidArgument(argument="write_as", value=function, problem=problem)
    return f"{function.__module__}:{name}"


def _target(context: ClientContext, name: str) -> TableRef:
    try:
        return context.tables.reference(name)
    except TableNotFound as error:
        raise TargetNotFound(target=name, hint=error.hint) from error
    except NotADeltaTable as error:
        raise TargetNotDelta(target=name, problem=error.facts.get("problem", str(error))) from error
