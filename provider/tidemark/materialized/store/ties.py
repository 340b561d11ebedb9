"""The ties of kept queries: the tables that they read, and the table that they are for others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import sqlalchemy as sa

from tidemark.control.ties import Flow, TableAt, Tie
from tidemark.materialized.model.definitions import KeptKind
from tidemark.materialized.store.schema import kept_views
from tidemark.streams.store.schema import streams
from tidemark.streams.store.ties import base_tables

__all__ = ["dynamic_table_ties", "materialized_view_ties"]

_of, _stream = kept_views.c, streams.c


def _ties(kind: KeptKind, connection: sa.Connection) -> Sequence[Tie]:
    """The bases, by the stream that pins them, and the kept table. One query."""
    pins = (_stream.name == _of.stream) & _stream.dropped_at.is_(None)
    query = (
        sa.select(_of.uid, _of.kept_name, _of.kept_path, _stream.source_name, _stream.source_path, _stream.view_bases)
        .select_from(kept_views.outerjoin(streams, pins))
        .where(_of.ended_at.is_(None), _of.kind == kind.value)
    )
    rows = connection.execute(query).mappings().all()
    kept = [Tie(row["uid"], Flow.IS, TableAt(row["kept_name"], row["kept_path"])) for row in rows]
    pinned = [row for row in rows if row["source_path"] is not None]
    return (*kept, *(Tie(row["uid"], Flow.READS, table) for row in pinned for table in base_tables(row)))


materialized_view_ties = partial(_ties, KeptKind.MATERIALIZED_VIEW)
dynamic_table_ties = partial(_ties, KeptKind.DYNAMIC_TABLE)
