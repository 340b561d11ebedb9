"""Partitions of a change stream in the store, and the load that each batch brought them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.change_streams.model.change_streams import LoadSegment, Partition, PartitionState, Position
from tidemark.change_streams.store.schema import group_partitions, partition_load, partitions
from tidemark.control.objects import portions
from tidemark.model.codec import from_json, to_json

__all__ = [
    "active",
    "active_at",
    "add_load",
    "close",
    "forget",
    "forget_stream",
    "insert",
    "keep",
    "lookup_all",
    "of_stream",
    "partition_of",
    "segment_before",
    "segments",
    "started_at",
]

_of = partitions.c
_load = partition_load.c


def insert(connection: sa.Connection, stream_uid: str, made: Iterable[Partition]) -> None:
    """Add partitions; their tokens must be new."""
    rows = [
        {
            "stream_uid": stream_uid,
            "token": one.token,
            "lo": one.lo,
            "hi": one.hi,
            "parents": to_json(one.parents),
            "start_at": one.start,
            "end_at": one.end,
            "batch": one.batch,
            "hot": one.hot,
            "quiet": one.quiet,
        }
        for one in made
    ]
    if rows:
        connection.execute(partitions.insert(), rows)


def active(connection: sa.Connection, stream_uid: str) -> tuple[Partition, ...]:
    """The partitions that have no end yet, by range."""
    return _many(connection, _of.stream_uid == stream_uid, _of.end_at.is_(None))


def active_at(connection: sa.Connection, stream_uid: str, at: datetime) -> tuple[Partition, ...]:
    """Those whose life [start, end) holds the time, by range."""
    return _many(connection, _of.stream_uid == stream_uid, _of.start_at <= at, _of.end_at.is_(None) | (_of.end_at > at))


def started_at(connection: sa.Connection, stream_uid: str, times: Iterable[datetime]) -> tuple[Partition, ...]:
    """The partitions that begin at any of these times."""
    found: list[Partition] = []
    for some in portions(sorted(set(times))):
        found.extend(_many(connection, _of.stream_uid == stream_uid, _of.start_at.in_(some)))
    return tuple(found)


def lookup_all(connection: sa.Connection, stream_uid: str, tokens: Iterable[str]) -> dict[str, Partition]:
    """The partitions of these tokens; those that are not there are left out."""
    found: dict[str, Partition] = {}
    for some in portions(sorted(set(tokens))):
        found.update((p.token, p) for p in _many(connection, _of.stream_uid == stream_uid, _of.token.in_(some)))
    return found


def of_stream(connection: sa.Connection, stream_uid: str) -> tuple[Partition, ...]:
    """All that are not forgotten."""
    return _many(connection, _of.stream_uid == stream_uid)


def close(connection: sa.Connection, stream_uid: str, ended: Sequence[Partition]) -> bool:
    """Each ends where it says, if it was active; True if all were."""
    moves = (
        partitions.update()
        .where(_of.stream_uid == stream_uid, _of.token == one.token, _of.end_at.is_(None))
        .values(end_at=one.end)
        for one in ended
    )
    return sum(connection.execute(move).rowcount for move in moves) == len(ended)


def keep(connection: sa.Connection, stream_uid: str, kept: Sequence[Partition]) -> None:
    """Their counters of churn are these now."""
    rows = [{"of_stream": stream_uid, "of_token": one.token, "hot": one.hot, "quiet": one.quiet} for one in kept]
    if rows:
        move = partitions.update().where(
            _of.stream_uid == sa.bindparam("of_stream"), _of.token == sa.bindparam("of_token")
        )
        connection.execute(move.values(hot=sa.bindparam("hot"), quiet=sa.bindparam("quiet")), rows)


def add_load(connection: sa.Connection, stream_uid: str, load: Iterable[LoadSegment]) -> None:
    """Insert the load that a batch brought; call it once for each, in the transaction that closes it."""
    rows = [
        {
            "stream_uid": stream_uid,
            "token": one.token,
            "start_at": one.start.at,
            "start_sequence": one.start.sequence,
            "rows": one.rows,
        }
        for one in load
    ]
    if rows:
        connection.execute(partition_load.insert(), rows)


def segments(
    connection: sa.Connection, stream_uid: str, token: str, since: Position, *, most: int
) -> tuple[LoadSegment, ...]:
    """The load of a token that begins at or after this place, in order, at most `most` of it."""
    later = (_load.start_at > since.at) | (_load.start_sequence >= since.sequence)
    query = _segments(stream_uid, token).where(_load.start_at >= since.at, later)
    found = connection.execute(query.order_by(_load.start_at, _load.start_sequence).limit(most))
    return tuple(LoadSegment(token, Position(at, sequence), rows) for at, sequence, rows in found)


def segment_before(
    connection: sa.Connection, stream_uid: str, token: str, at: datetime, *, since: datetime
) -> tuple[LoadSegment, ...]:
    """The last segment that begins before this time, and not before `since`; none if there is none."""
    query = _segments(stream_uid, token).where(_load.start_at >= since, _load.start_at < at)
    found = connection.execute(query.order_by(_load.start_at.desc(), _load.start_sequence.desc()).limit(1))
    return tuple(LoadSegment(token, Position(start, sequence), rows) for start, sequence, rows in found)


def forget(connection: sa.Connection, stream_uid: str, *, before: datetime) -> int:
    """Remove load from before this time, and partitions that ended by then and that no group must still finish; how
    many partitions. Groups forget theirs first.
    """
    connection.execute(partition_load.delete().where(_load.stream_uid == stream_uid, _load.start_at < before))
    needed = sa.exists().where(
        group_partitions.c.token == _of.token, group_partitions.c.state != PartitionState.FINISHED.value
    )
    ended = partitions.delete().where(_of.stream_uid == stream_uid, _of.end_at <= before, ~needed)
    return connection.execute(ended).rowcount


def forget_stream(connection: sa.Connection, stream_uid: str) -> None:
    """Remove all of a change stream that is dropped, and the load."""
    connection.execute(partition_load.delete().where(_load.stream_uid == stream_uid))
    connection.execute(partitions.delete().where(_of.stream_uid == stream_uid))


def partition_of(row: Mapping[str, Any] | sa.RowMapping) -> Partition:
    """The partition in a row that has the columns of `tidemark_partition`."""
    return Partition(
        token=row["token"],
        lo=row["lo"],
        hi=row["hi"],
        parents=tuple(from_json(list, row["parents"])),
        start=row["start_at"],
        end=row["end_at"],
        batch=row["batch"],
        hot=row["hot"],
        quiet=row["quiet"],
    )


def _segments(stream_uid: str, token: str) -> sa.Select[Any]:
    query = sa.select(_load.start_at, _load.start_sequence, _load.rows)
    return query.where(_load.stream_uid == stream_uid, _load.token == token)


def _many(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> tuple[Partition, ...]:
    query = sa.select(partitions).where(*conditions).order_by(_of.lo, _of.start_at)
    return tuple(partition_of(row) for row in connection.execute(query).mappings())
