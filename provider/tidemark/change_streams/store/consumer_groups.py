"""Consumer groups in the store: each state move by name, with its condition."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.change_streams.model.change_streams import ChangeStream, ConsumerGroup
from tidemark.change_streams.store.schema import consumer_groups
from tidemark.control.objects import touch
from tidemark.errors import ConsumerGroupNotFound

__all__ = ["end", "end_all", "find", "insert", "lookup", "of_stream", "set_paused"]

_of = consumer_groups.c


def lookup(connection: sa.Connection, stream_uid: str, name: str) -> ConsumerGroup | None:
    """The live group of that name, in any case, or None: a question, not a failure."""
    query = _live(stream_uid).where(_of.folded_name == name.casefold())
    row = connection.execute(query).mappings().first()
    return None if row is None else _group(row)


def find(connection: sa.Connection, stream: ChangeStream, name: str) -> ConsumerGroup:
    """The live group of that name. Raises ConsumerGroupNotFound."""
    group = lookup(connection, stream.uid, name)
    if group is None:
        known = ", ".join(one.name for one in of_stream(connection, stream.uid)) or "none"
        raise ConsumerGroupNotFound(stream=stream.name, group=name, known=known)
    return group


def of_stream(connection: sa.Connection, stream_uid: str) -> tuple[ConsumerGroup, ...]:
    """The live groups, by name; sorted here, since databases differ in how they sort."""
    found = (_group(row) for row in connection.execute(_live(stream_uid)).mappings())
    return tuple(sorted(found, key=lambda group: group.name.casefold()))


def insert(connection: sa.Connection, group: ConsumerGroup) -> None:
    """Add a group; its name must be free."""
    connection.execute(
        consumer_groups.insert().values(
            uid=group.uid,
            stream_uid=group.stream_uid,
            name=group.name,
            folded_name=group.name.casefold(),
            start_at=group.start,
            created_at=group.created_at,
            paused=group.paused,
        )
    )
    touch(connection, "consumer_group", (group.uid,))


def set_paused(connection: sa.Connection, uid: str, *, paused: bool) -> None:
    """Plan hands out nothing for the group while it pauses; chunks that were handed out continue. A second run changes
    nothing.
    """
    moved = consumer_groups.update().where(_of.uid == uid, _of.paused.is_not(paused)).values(paused=paused)
    if connection.execute(moved).rowcount == 1:
        touch(connection, "consumer_group", (uid,))


def end(connection: sa.Connection, uid: str, *, at: datetime) -> None:
    """The group is no more; its uid is never used again."""
    connection.execute(consumer_groups.update().where(_of.uid == uid, _of.dropped_at.is_(None)).values(dropped_at=at))
    touch(connection, "consumer_group", (uid,))


def end_all(connection: sa.Connection, stream_uid: str, *, at: datetime) -> None:
    """Every group of the change stream ends with it."""
    of_it = (_of.stream_uid == stream_uid) & _of.dropped_at.is_(None)
    touch(connection, "consumer_group", connection.execute(sa.select(_of.uid).where(of_it)).scalars())
    connection.execute(consumer_groups.update().where(of_it).values(dropped_at=at))


def _live(stream_uid: str) -> sa.Select[tuple[Any, ...]]:
    return sa.select(consumer_groups).where(_of.stream_uid == stream_uid, _of.dropped_at.is_(None))


def _group(row: Mapping[str, Any] | sa.RowMapping) -> ConsumerGroup:
    return ConsumerGroup(
        uid=row["uid"],
        stream_uid=row["stream_uid"],
        name=row["name"],
        start=row["start_at"],
        created_at=row["created_at"],
        paused=row["paused"],
    )
