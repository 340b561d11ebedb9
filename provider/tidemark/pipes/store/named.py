"""Rows of objects with names: found by a name, listed, and ended."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.pipes.planning.names import in_order, key_of, known_names

__all__ = ["change", "end", "known", "live_rows", "lookup_row"]


def lookup_row(connection: sa.Connection, table: sa.Table, name: str) -> sa.RowMapping | None:
    """The live row of that name, or None. Raises InvalidArgument for a bad name."""
    return connection.execute(_live(table).where(table.c.folded_name == key_of(name))).mappings().first()


def live_rows(connection: sa.Connection, table: sa.Table) -> list[sa.RowMapping]:
    """All live rows by name; sorted here, since databases differ in how they sort."""
    return sorted(connection.execute(_live(table)).mappings(), key=lambda row: in_order(row["name"]))


def known(connection: sa.Connection, table: sa.Table, name: str) -> str:
    """The live names that are similar to `name`, for an error."""
    return known_names(name, [row["name"] for row in live_rows(connection, table)])


def change(
    connection: sa.Connection, table: sa.Table, uid: str, *expected: sa.ColumnElement[bool], **values: Any
) -> bool:
    """Change a live row if it is as expected; True if it was."""
    standing = table.update().where(table.c.uid == uid, table.c.ended_at.is_(None), *expected)
    return connection.execute(standing.values(**values)).rowcount == 1


def end(connection: sa.Connection, table: sa.Table, uid: str, *, at: datetime) -> bool:
    """End a live row; True if it lived. Its name is free."""
    return change(connection, table, uid, ended_at=at)


def _live(table: sa.Table) -> sa.Select[tuple[object, ...]]:
    return sa.select(table).where(table.c.ended_at.is_(None))
