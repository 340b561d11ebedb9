"""Moves of landing tables: registered by the first task that opens a channel, ended with their last channel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.channels.store.schema import landing_tables
from tidemark.control.objects import touch
from tidemark.model.streams import Addressing, TableRef

__all__ = ["KIND", "end", "live", "register", "with_uids"]

KIND = "landing_table"
_of = landing_tables.c


def register(connection: sa.Connection, table: TableRef, *, by: str, at: datetime) -> None:
    """The table has channels. A second time changes nothing but a name or a path that is another one now."""
    found = {"name": table.name, "path": table.path, "ended_at": None}
    if connection.execute(landing_tables.update().where(_of.uid == table.table_id).values(found)).rowcount == 0:
        connection.execute(landing_tables.insert().values(uid=table.table_id, registered_at=at, **found))
    touch(connection, KIND, [table.table_id], by=by)


def end(connection: sa.Connection, uid: str, *, at: datetime) -> None:
    """The table has no channel any more. A second time changes nothing."""
    connection.execute(landing_tables.update().where(_of.uid == uid, _of.ended_at.is_(None)).values(ended_at=at))
    touch(connection, KIND, [uid])


def live(connection: sa.Connection) -> Mapping[str, TableRef]:
    """Uid → table, of all that have channels."""
    return _tables(connection.execute(sa.select(landing_tables).where(_of.ended_at.is_(None))))


def with_uids(connection: sa.Connection, uids: Sequence[str]) -> Mapping[str, TableRef]:
    """Uid → table, of those that have channels."""
    return _tables(connection.execute(sa.select(landing_tables).where(_of.uid.in_(uids), _of.ended_at.is_(None))))


def _tables(rows: Iterable[sa.Row[Any]]) -> Mapping[str, TableRef]:
    return {row.uid: TableRef(row.name, row.path, row.uid, Addressing.PATH) for row in rows}
