"""Chunks of consumer groups in the store: written ahead, written by a sink, committed; their bounds never change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.change_streams.model.change_streams import ChangeStream, Chunk, ChunkState, ConsumerGroup, Position
from tidemark.change_streams.store.schema import chunks, group_partitions
from tidemark.control.objects import touch
from tidemark.model.codec import from_json, to_json

__all__ = [
    "as_stored",
    "count_open",
    "forget",
    "forget_group",
    "furthest",
    "insert",
    "mark_committed",
    "mark_written",
    "of_group",
    "open_ones",
    "take",
    "written_ones",
]

_of = chunks.c


def insert(connection: sa.Connection, made: Iterable[Chunk], *, run: str) -> None:
    """Write chunks ahead; their numbers must be new."""
    rows = [
        {
            "group_uid": one.group_uid,
            "token": one.token,
            "number": one.number,
            "start_at": one.start.at,
            "start_sequence": one.start.sequence,
            "end_at": one.end.at,
            "end_sequence": one.end.sequence,
            "expected": one.expected,
            "last": one.last,
            "state": ChunkState.OPEN.value,
            "run": run,
        }
        for one in made
    ]
    if rows:
        connection.execute(chunks.insert(), rows)
        touch(connection, "consumer_group", {str(row["group_uid"]) for row in rows}, by=run)


def as_stored(connection: sa.Connection, chunk: Chunk) -> Chunk | None:
    """The chunk of that group, token and number as it stands, or None: a question, not a failure."""
    row = connection.execute(sa.select(chunks).where(*_same(chunk))).mappings().first()
    return None if row is None else _chunk(row, chunk.stream_uid, chunk.stream, chunk.group)


def of_group(connection: sa.Connection, stream: ChangeStream, group: ConsumerGroup) -> tuple[Chunk, ...]:
    """All that are not forgotten, oldest first."""
    return _many(connection, stream, group)


def open_ones(
    connection: sa.Connection, stream: ChangeStream, group: ConsumerGroup, *, run: str, token: str | None = None
) -> tuple[Chunk, ...]:
    """Chunks that no sink has, of partitions that have not failed in `run`, oldest first; of `token` alone if given."""
    failed = sa.exists().where(
        group_partitions.c.group_uid == group.uid,
        group_partitions.c.token == _of.token,
        group_partitions.c.failed_run == run,
    )
    conditions = [_of.state == ChunkState.OPEN.value, ~failed]
    return _many(connection, stream, group, *conditions, *([] if token is None else [_of.token == token]))


def written_ones(connection: sa.Connection, stream: ChangeStream, group: ConsumerGroup) -> tuple[Chunk, ...]:
    """Chunks that the sink has, and the watermark is not past, oldest first."""
    return _many(connection, stream, group, _of.state == ChunkState.WRITTEN.value)


def count_open(connection: sa.Connection, group_uid: str) -> int:
    """How many no sink has."""
    query = sa.select(sa.func.count()).where(_of.group_uid == group_uid, _of.state == ChunkState.OPEN.value)
    return int(connection.execute(query).scalar_one())


def furthest(connection: sa.Connection, group_uid: str) -> datetime | None:
    """The end of the one that reaches furthest, exclusive; None: there is none that is not forgotten."""
    found: datetime | None = connection.execute(
        sa.select(sa.func.max(_of.end_at)).where(_of.group_uid == group_uid)
    ).scalar_one()
    return found


def take(connection: sa.Connection, chunk: Chunk, *, run: str, task: str | None) -> None:
    """The chunk, if it is open, is worked on in that run, by the task of that key."""
    open_one = chunks.update().where(*_same(chunk), _of.state == ChunkState.OPEN.value)
    connection.execute(open_one.values(run=run, task=task))
    touch(connection, "consumer_group", (chunk.group_uid,), by=task)


def mark_written(connection: sa.Connection, chunk: Chunk, *, rows: int, facts: Mapping[str, str], at: datetime) -> bool:
    """The sink has it: OPEN → WRITTEN; True if it was open."""
    values = {"state": ChunkState.WRITTEN.value, "rows": rows, "facts": to_json(facts), "written_at": at}
    move = chunks.update().where(*_same(chunk), _of.state == ChunkState.OPEN.value).values(values)
    return connection.execute(move).rowcount == 1


def mark_committed(connection: sa.Connection, done: Sequence[Chunk], *, at: datetime) -> None:
    """The watermarks are past them: WRITTEN → COMMITTED."""
    rows = [{"of_group": one.group_uid, "of_token": one.token, "of_number": one.number} for one in done]
    if rows:
        move = chunks.update().where(
            _of.group_uid == sa.bindparam("of_group"),
            _of.token == sa.bindparam("of_token"),
            _of.number == sa.bindparam("of_number"),
            _of.state == ChunkState.WRITTEN.value,
        )
        connection.execute(move.values(state=ChunkState.COMMITTED.value, committed_at=at), rows)


def forget(connection: sa.Connection, group_uid: str, *, before: datetime) -> int:
    """Remove committed chunks that end by then; how many. Their numbers are not used again."""
    old = (_of.group_uid == group_uid) & (_of.state == ChunkState.COMMITTED.value) & (_of.end_at <= before)
    return connection.execute(chunks.delete().where(old)).rowcount


def forget_group(connection: sa.Connection, group_uid: str) -> None:
    """Remove all of a group that has ended."""
    connection.execute(chunks.delete().where(_of.group_uid == group_uid))


def _same(chunk: Chunk) -> tuple[sa.ColumnElement[bool], ...]:
    return _of.group_uid == chunk.group_uid, _of.token == chunk.token, _of.number == chunk.number


def _many(
    connection: sa.Connection, stream: ChangeStream, group: ConsumerGroup, *conditions: sa.ColumnElement[bool]
) -> tuple[Chunk, ...]:
    query = sa.select(chunks).where(_of.group_uid == group.uid, *conditions)
    ordered = query.order_by(_of.start_at, _of.start_sequence, _of.token, _of.number)
    return tuple(_chunk(row, stream.uid, stream.name, group.name) for row in connection.execute(ordered).mappings())


def _chunk(row: Mapping[str, Any] | sa.RowMapping, stream_uid: str, stream: str, group: str) -> Chunk:
    return Chunk(
        group_uid=row["group_uid"],
        stream_uid=stream_uid,
        stream=stream,
        group=group,
        token=row["token"],
        number=row["number"],
        start=Position(row["start_at"], row["start_sequence"]),
        end=Position(row["end_at"], row["end_sequence"]),
        expected=row["expected"],
        last=row["last"],
        state=ChunkState(row["state"]),
        rows=row["rows"],
        facts={} if row["facts"] is None else from_json(dict, row["facts"]),
    )
