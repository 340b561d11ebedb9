"""The ties of pipes: the table that the statement of each names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import sqlalchemy as sa

from tidemark.control.ties import Flow, TableAt, Tie
from tidemark.errors import NotYetSupported, SqlCompilationError
from tidemark.pipes.planning.sql_copy import copy_of_pipe
from tidemark.pipes.store.schema import pipes
from tidemark.sql.text import Cursor

__all__ = ["pipe_ties"]

_of = pipes.c


def pipe_ties(connection: sa.Connection) -> Sequence[Tie]:
    """The table of each pipe, by its name alone. One query."""
    rows = connection.execute(sa.select(_of.uid, _of.copy_statement).where(_of.ended_at.is_(None)))
    return tuple(Tie(row.uid, Flow.WRITES, table) for row in rows for table in _targets(row.copy_statement))


@lru_cache(maxsize=4096)
def _targets(statement: str) -> tuple[TableAt, ...]:
    """The one table; none for a statement that an earlier release has stored and this one does not read."""
    try:
        return (TableAt(copy_of_pipe(Cursor(statement)).table.replace("`", "")),)
    except (SqlCompilationError, NotYetSupported):
        return ()
