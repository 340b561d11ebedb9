"""Old writes, moves and errors of replications, dropped in small steps."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from tidemark.control.history import Cursor, Step, cursor_of, drop_by_number, next_of
from tidemark.replication.store.schema import object_writes, replication_errors, replication_moves

__all__ = ["drop_errors", "drop_moves", "drop_object_writes"]


def drop_object_writes(connection: sa.Connection, before: datetime, after: Cursor | None, most: int) -> Step:
    """Writes that a later write of their kind has replaced; the numbers are drawn from the object."""
    of, newer = object_writes.c, object_writes.alias("newer")
    over = (newer.c.object_uid == of.object_uid) & (newer.c.number > of.number)
    followed = sa.exists().where(over, newer.c.kind == of.kind, newer.c.state == "done")
    old = (of.state != "open") & (of.closed_at < before) & (of.deadline < before)
    query = sa.select(of.closed_at, of.object_uid, of.number).where(old)
    found = next_of(connection, query, (of.closed_at, of.object_uid, of.number), after, most)
    dropped = 0
    for row in found:
        own = (of.object_uid == row.object_uid) & (of.number == row.number)
        dropped += connection.execute(object_writes.delete().where(own, followed)).rowcount
    return Step(dropped, cursor_of(found, most))


def drop_moves(connection: sa.Connection, before: datetime, after: Cursor | None, most: int) -> Step:
    """Moves of replications by runs that later moves have followed."""
    return drop_by_number(connection, replication_moves, replication_moves.c.replication_uid, before, after, most)


def drop_errors(connection: sa.Connection, before: datetime, after: Cursor | None, most: int) -> Step:
    """Errors that were seen last before `before`, all of them."""
    of = replication_errors.c
    query = sa.select(of.last_seen_at, of.id).where(of.last_seen_at < before)
    found = next_of(connection, query, (of.last_seen_at, of.id), after, most)
    dropped = replication_errors.delete().where(of.id.in_([row.id for row in found]), of.last_seen_at < before)
    return Step(connection.execute(dropped).rowcount, cursor_of(found, most))
