"""The point at which a backfill ends and a group's records begin, with neither a gap nor an overlap between them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from tidemark.change_streams.model.backfill import BACKFILL_TABLE, Backfill, BackfillRequest
from tidemark.change_streams.model.change_streams import (
    BatchState,
    CaptureBatch,
    ChangeStream,
    ConsumerGroup,
    WatchedTable,
)
from tidemark.change_streams.planning import own_tables as own
from tidemark.change_streams.planning.sinks import named_table
from tidemark.change_streams.store import backfills, change_streams, chunks, consumer_groups, group_partitions
from tidemark.change_streams.store.schema import capture_batches
from tidemark.change_streams.worker.discovery import where_it_is
from tidemark.change_streams.worker.groups import begin_group
from tidemark.change_streams.worker.sinks import keep_sink, own_tables
from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument
from tidemark.model.codec import from_json
from tidemark.model.statements import TransactionKey
from tidemark.model.streams import TableRef
from tidemark.streams.planning.names import require_name
from tidemark.streams.worker.runtime import Runtime

__all__ = ["BackfillPoint", "Backfilled", "backfill_from", "begin_backfill", "finish_backfill"]


@dataclass(frozen=True)
class BackfillPoint:
    """The group's records of the table are those of the versions after `version`. `rows`: None until they are in the
    target.
    """

    group: ConsumerGroup
    watched: WatchedTable
    version: int
    rows: int | None


@dataclass(frozen=True)
class Backfilled:
    """The outcome of a backfill. `found`: an earlier run had written the rows."""

    point: BackfillPoint
    rows: int
    found: bool


def begin_backfill(store: ControlStore, stream: str, group: str, table: str, target: TableRef) -> BackfillPoint:
    """Create the group behind all that is published now, and return the table's version at that place. An existing
    group keeps its place; the version is the one behind which it has got none of the table's records.

    The captured versions and the published time are one state of the store, so the place fits the version exactly. The
    version is kept with the group. A new group is handed out nothing before `finish_backfill`. A second run finds the
    same. Raises ChangeStreamNotFound, and InvalidArgument for a table that is not watched, or a target that is. Raises
    InvalidArgument also for rows that are in another target already. The same for a group that began within a batch, or
    has got a part of one with the table's records.
    """
    require_name(group)
    uid = store.new_id()

    def begin(connection: sa.Connection) -> BackfillPoint:
        found = change_streams.find(connection, stream)
        watched = _watched(found, table)
        own.require_target(found, own_tables(connection), target, of_table=watched.table.table_id)
        reader = consumer_groups.lookup(connection, found.uid, group)
        if reader is None:
            reader = begin_group(connection, store, found, uid, group, "now")
        kept = backfills.lookup(connection, reader.uid, watched.table.table_id)
        if kept is None:
            version = _version(connection, found, reader, watched)
            kept = Backfill(reader.uid, watched.table.table_id, target.table_id, version)
            backfills.insert(connection, kept)
        if kept.target_id != target.table_id:
            _aim_again(connection, kept, target)
        keep_sink(connection, store, found.uid, reader.uid, target)
        return BackfillPoint(reader, watched, kept.version, kept.rows)

    return store.write(begin)


def backfill_from(
    runtime: Runtime, point: BackfillPoint, target: TableRef, *, overwrite: bool, key: TransactionKey
) -> Backfilled:
    """Put the rows at the point into the target, by a BACKFILL_TABLE job, and let the group begin. Rows that a job had
    written before are found, and not written again. Raises TableNotFound and what the job raises.
    """
    request = BackfillRequest(
        group_uid=point.group.uid,
        source=where_it_is(point.watched, runtime.tables).table,
        version=point.version,
        columns=point.watched.columns,
        keys=point.watched.keys,
        target=target,
        overwrite=overwrite,
    )
    done = runtime.run_job(BACKFILL_TABLE, request, key=key)
    finish_backfill(runtime.store, point, done.rows)
    return Backfilled(point, done.rows, found=done.found)


def finish_backfill(store: ControlStore, point: BackfillPoint, rows: int) -> None:
    """The rows are in the target: the group is handed out its records, and they are written no second time. A second
    run changes nothing.
    """
    uid, source = point.group.uid, point.watched.table.table_id
    store.write(lambda connection: backfills.finish(connection, uid, source, rows=rows, at=store.clock()))


def _aim_again(connection: sa.Connection, kept: Backfill, target: TableRef) -> None:
    """Raises InvalidArgument if the rows are in another table."""
    if kept.done_at is not None:
        problem = "the group's rows are in another table already; take a group of its own, or reset this one"
        raise InvalidArgument(argument="target", value=target.name, problem=problem)
    backfills.aim(connection, kept.group_uid, kept.source_id, target.table_id)


def _version(connection: sa.Connection, found: ChangeStream, reader: ConsumerGroup, watched: WatchedTable) -> int:
    """Raises InvalidArgument."""
    delivered = group_partitions.low_watermark(connection, reader.uid) or reader.start
    handed_out = chunks.furthest(connection, reader.uid) or reader.start
    for batch in _ending_after(connection, found.uid, delivered):
        if batch.floor < reader.start:
            problem = f"it began at {reader.start.isoformat()}, in the middle of a batch; reset it to 'now'"
            raise InvalidArgument(argument="consumer_group", value=reader.name, problem=problem)
        for taken in batch.ranges:
            if taken.watched.table.table_id != watched.table.table_id:
                continue
            if batch.floor < handed_out:
                problem = (
                    f"it has got a part of the changes after version {taken.start}. Let it read the rest first, or"
                    " reset it to 'now', and begin with the backfill"
                )
                raise InvalidArgument(argument="consumer_group", value=reader.name, problem=problem)
            return taken.start
    return watched.captured


def _ending_after(connection: sa.Connection, stream_uid: str, at: datetime) -> list[CaptureBatch]:
    """Captured batches that end later than this, oldest first: the first of a table continues from there."""
    of = capture_batches.c
    query = sa.select(of.batch).where(
        of.stream_uid == stream_uid, of.state == BatchState.CAPTURED.value, of.published_until > at
    )
    return [from_json(CaptureBatch, text) for text in connection.execute(query.order_by(of.number)).scalars()]


def _watched(stream: ChangeStream, table: str) -> WatchedTable:
    """Raises InvalidArgument."""
    watched = named_table(stream.tables, table)
    if watched is None:
        known = ", ".join(one.table.name for one in stream.tables) or "none"
        problem = f"{stream.name} does not watch it; it watches {known}"
        raise InvalidArgument(argument="table", value=table, problem=problem)
    return watched
