"""The parts of a read of a view: the kept table at one version, and the window of changes since."""

from __future__ import annotations

from dataclasses import dataclass, replace

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.errors import KeptViewNotReady, SourceMoved
from tidemark.materialized.model.definitions import KeptView
from tidemark.materialized.store import views
from tidemark.materialized.worker.ends import settled_version
from tidemark.materialized.worker.following import follow_bases
from tidemark.materialized.worker.sizes import lost_files
from tidemark.materialized.worker.streams import newest_bases
from tidemark.model.streams import Stream, StreamOffset, StreamWindow
from tidemark.streams.planning.bounds import UNBOUNDED
from tidemark.streams.store import streams
from tidemark.streams.worker.opening import Tables, wherever
from tidemark.streams.worker.sources import head_of, window_from

__all__ = ["KeptRead", "fresh_read", "kept_read", "whole_window"]


@dataclass(frozen=True)
class KeptRead:
    """The kept table at the version of the last refresh, and the window since. `version`: None before the first."""

    view: KeptView
    version: int | None
    window: StreamWindow


def kept_read(store: ControlStore, name: str, tables: Tables) -> tuple[KeptView, int]:
    """The view and the version of its kept table after the last refresh. Raises KeptViewNotFound, KeptViewNotReady."""
    view, _, version = store.read(lambda connection: _look(connection, name))
    if version is None:
        raise KeptViewNotReady(view=view.name)
    return view, _without_changes(view, version, tables)


def fresh_read(store: ControlStore, name: str, tables: Tables) -> KeptRead:
    """The parts of a read that answers for the newest versions of the bases. Bases that were renamed or moved are
    followed. Raises KeptViewNotFound, RelocationRefused, and the errors of a stream whose window cannot be read.
    """
    view, stream, version = store.read(lambda connection: _look(connection, name))
    try:
        ends = head_of(stream, tables, UNBOUNDED).ends
    except SourceMoved:
        follow_bases(store, tables, [base.table.path for base in stream.bases], of=view.name)
        view, stream, version = store.read(lambda connection: _look(connection, name))
        ends = head_of(stream, wherever(tables), UNBOUNDED).ends
    window = window_from(stream, ends, store.clock())
    owes_all = window.kind is not window_from(replace(stream, initial_rows_pending=False), ends, store.clock()).kind
    if version is None or owes_all or _lost_files(window, tables):
        return KeptRead(view, None, whole_window(store, stream, tables))
    return KeptRead(view, _without_changes(view, version, tables), window)


def _lost_files(window: StreamWindow, tables: Tables) -> bool:
    """Whether a file of an external table was overwritten or removed in the window: its old rows cannot be read."""
    return any(lost_files(base, wherever(tables)(base.table)) for base in window.bases)


def whole_window(store: ControlStore, stream: Stream, tables: Tables) -> StreamWindow:
    """The window with all rows of the query at the newest versions of its bases."""
    bases = newest_bases([base.table for base in stream.bases], tables, {})
    total = StreamOffset(stream.offset.table_id, sum(base.version for base in bases))
    there = replace(stream, view_bases=bases, offset=total, initial_rows_pending=True)
    return window_from(there, [base.version for base in bases], store.clock())


def _look(connection: sa.Connection, name: str) -> tuple[KeptView, Stream, int | None]:
    """The view, its stream and the version that belong together: one transaction moved them."""
    view = views.find_view(connection, name)
    stream = streams.find(connection, view.stream)
    return view, stream, settled_version(connection, view, stream.uid)


def _without_changes(view: KeptView, version: int, tables: Tables) -> int:
    """The newest version of the kept table that has the same rows: old files may be gone after OPTIMIZE and VACUUM."""
    log = wherever(tables)(view.kept)
    head = log.head()
    return head if head > version and not log.has_changes(version, head) else version
