"""The ties of clustered tables: a table whose rows stay the same."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from tidemark.clustering.store.schema import clustered_tables
from tidemark.control.ties import Flow, TableAt, Tie

__all__ = ["clustered_ties"]

_of = clustered_tables.c


def clustered_ties(connection: sa.Connection) -> Sequence[Tie]:
    """The table of each. One query."""
    rows = connection.execute(sa.select(_of.uid, _of.name, _of.path).where(_of.ended_at.is_(None)))
    return tuple(Tie(row.uid, Flow.KEEPS, TableAt(row.name, row.path)) for row in rows)
