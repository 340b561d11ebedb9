"""The views of the store as nodes: their bases, the time that a refresh takes, and whether a base has changed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from statistics import fmean

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.errors import LakeError, SourceError
from tidemark.materialized.model.definitions import KeptView
from tidemark.materialized.planning.graph import Node
from tidemark.materialized.store import refreshes, views
from tidemark.model.streams import Stream
from tidemark.streams.store import streams
from tidemark.streams.worker.opening import Tables, wherever

__all__ = ["nodes_of"]


def nodes_of(store: ControlStore, tables: Tables | None = None) -> tuple[Node, ...]:
    """All live views. With `tables` their logs say if bases have changed; else all count as changed."""

    def look(connection: sa.Connection) -> tuple[tuple[KeptView, Stream | None, tuple[float, ...]], ...]:
        found = views.live_views(connection)
        own: Mapping[str, Stream] = streams.lookup_all(connection, [view.stream for view in found])
        return tuple(
            (view, own.get(view.stream.casefold()), refreshes.newest_seconds(connection, view.uid)) for view in found
        )

    return tuple(_node(*one, tables) for one in store.read(look))


def _node(view: KeptView, stream: Stream | None, seconds: tuple[float, ...], tables: Tables | None) -> Node:
    bases = () if stream is None else tuple(base.table.path for base in stream.bases)
    expected = timedelta(seconds=fmean(seconds) if seconds else 0.0)
    changed = stream is None or tables is None or _has_changed(stream, tables)
    return Node(view, bases, expected, changed)


def _has_changed(stream: Stream, tables: Tables) -> bool:
    """Whether a base is ahead of the stream. A base that cannot be read counts, so that its refresh says why."""
    if stream.initial_rows_pending:
        return True
    try:
        return any(wherever(tables)(base.table).head() > base.version for base in stream.bases)
    except (SourceError, LakeError, OSError):
        return True
