"""The ties of search optimization: the table whose rows it finds."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from tidemark.control.ties import Flow, TableAt, Tie
from tidemark.search.store.schema import searches

__all__ = ["search_ties"]

_of = searches.c


def search_ties(connection: sa.Connection) -> Sequence[Tie]:
    """The table of each. One query."""
    rows = connection.execute(sa.select(_of.uid, _of.table_name, _of.table_path).where(_of.ended_at.is_(None)))
    return tuple(Tie(row.uid, Flow.KEEPS, TableAt(row.table_name, row.table_path)) for row in rows)
