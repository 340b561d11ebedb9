"""Where a backfill ends and a group's records begin, so that there is neither a gap nor an overlap between them."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from tidemark.control import change_streams, consumer_groups
from tidemark.control.schema import capture_batches
from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument
from tidemark.model.change_streams import BatchState, CaptureBatch, ChangeStream, ConsumerGroup, WatchedTable
from tidemark.model.codec import from_json
from tidemark.transactions.change_streams.definitions import get_change_stream
from tidemark.transactions.change_streams.groups import create_group

__all__ = ["BackfillPoint", "begin_backfill"]


@dataclass(frozen=True)
class BackfillPoint:
    """The group's records of the table are those of the versions after `version`."""

    group: ConsumerGroup
    watched: WatchedTable
    version: int


def begin_backfill(store: ControlStore, stream: str, group: str, table: str) -> BackfillPoint:
    """Create the group behind all that is published now, and say which version of the table that is; a group that is
    there keeps its place, and the version is the one behind which its records begin.

    What was captured and until when it is published is one state of the store, so the place fits the version exactly. A
    second run finds the same. Raises ChangeStreamNotFound, InvalidArgument for a table that is not watched, or a group
    that began in the middle of a batch.
    """
    seen = get_change_stream(store, stream)
    _watched(seen, table)
    found = create_group(store, stream, group, seen.published_until, if_not_exists=True)
    return store.read(lambda connection: _point(connection, stream, found.name, table))


def _point(connection: sa.Connection, stream: str, group: str, table: str) -> BackfillPoint:
    found = change_streams.find(connection, stream)
    reader = consumer_groups.find(connection, found, group)
    watched = _watched(found, table)
    for batch in _ending_after(connection, found.uid, reader):
        if batch.floor < reader.start:
            problem = f"it began at {reader.start.isoformat()}, in the middle of a batch; reset it to 'now'"
            raise InvalidArgument(argument="consumer_group", value=group, problem=problem)
        for taken in batch.ranges:
            if taken.watched.table.table_id == watched.table.table_id:
                return BackfillPoint(reader, watched, taken.start)
    return BackfillPoint(reader, watched, watched.captured)


def _ending_after(connection: sa.Connection, stream_uid: str, group: ConsumerGroup) -> list[CaptureBatch]:
    """Captured batches that end later than the group began, oldest first: the first of a table goes on from there."""
    of = capture_batches.c
    query = sa.select(of.batch).where(
        of.stream_uid == stream_uid, of.state == BatchState.CAPTURED.value, of.published_until > group.start
    )
    return [from_json(CaptureBatch, text) for text in connection.execute(query.order_by(of.number)).scalars()]


def _watched(stream: ChangeStream, table: str) -> WatchedTable:
    for watched in stream.tables:
        if table.casefold() in (watched.table.name.casefold(), watched.table.path.casefold()):
            return watched
    known = ", ".join(watched.table.name for watched in stream.tables) or "none"
    raise InvalidArgument(argument="table", value=table, problem=f"{stream.name} does not watch it; it watches {known}")
