"""Whether a stream has something to deliver: by the log, which never misses a change, or exactly, by its rows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.model.streams import Stream, StreamWindow, WindowKind
from tidemark.streams.planning.bounds import UNBOUNDED
from tidemark.streams.store import streams as stored_streams
from tidemark.streams.worker.offsets import advance_over
from tidemark.streams.worker.sources import Tables, look_at_sources, open_table, window_from
from tidemark.streams.worker.status import status_of
from tidemark.streams.worker.streams import get_stream

__all__ = ["RENEWED_EVERY", "has_data", "has_rows", "next_window", "renew_anchor"]

RENEWED_EVERY = timedelta(hours=1)  # a store with a thousand streams is not written at every look

HoldsRows = Callable[[StreamWindow], bool]
"""Whether a window that the log calls changed shows any row. Spark's work."""


def has_data(store: ControlStore, name: str, *, tables: Tables = open_table) -> bool:
    """Whether the next window may have something to deliver; reads logs only, and never says no to a change (R120,
    R123).

    A no renews the anchor of a stream whose source has had no commit since its offset (R86), as `renew_anchor` does.
    Raises what `begin` raises for the stream's source.
    """
    if next_window(store, name, tables=tables) is not None:
        return True
    renew_anchor(store, get_stream(store, name), tables)
    return False


def has_rows(
    store: ControlStore,
    name: str,
    *,
    holds_rows: HoldsRows,
    pass_as: str | None = None,
    tables: Tables = open_table,
) -> bool:
    """Whether the next window shows a row: what the log calls changed is read. Initial rows that are owed are rows.
    Changes behind a renumbering of rows count as rows, until a window ends there.

    `pass_as`: the run that moves the offset past a window that is proven empty, so that it is not read again. None
    moves nothing. The move is logged. A stream that a transaction holds, or has moved since, is left alone. A second
    call looks at what has come since. Raises what `has_data` raises.
    """
    (source,) = look_at_sources(store, [name], tables, UNBOUNDED, to_read=True)
    window = window_from(get_stream(store, name), source.ends, store.clock())
    more = sum(source.ends) < source.head  # behind rows that have other ids by then, which no look reads
    if source.silent(window):
        if not more:
            renew_anchor(store, get_stream(store, name), tables)
        return more
    if window.kind is WindowKind.INITIAL_ROWS or holds_rows(window):
        return True
    if pass_as is None:
        return more
    store.write(lambda connection: _pass(connection, window, who=pass_as, at=store.clock()))
    return False


def next_window(store: ControlStore, name: str, *, tables: Tables = open_table) -> StreamWindow | None:
    """The window that a consumption would take now; None where the log proves that it delivers nothing. It may end
    later than that, at changes of rows that have other ids by then.
    """
    (source,) = look_at_sources(store, [name], tables, UNBOUNDED)
    window = window_from(get_stream(store, name), source.ends, store.clock())
    return None if source.silent(window) else window


def renew_anchor(store: ControlStore, stream: Stream, tables: Tables) -> bool:
    """Count staleness from now, if nothing was committed behind the stream's offset and it is not stale (R86); whether
    it was done.

    Commits that changed no row are no data either, but they age: their files and the commits themselves are cleaned up.
    For them the offset must move, and only a consumption moves it. A second call within RENEWED_EVERY does nothing, and
    one that somebody outran does nothing.
    """
    now = store.clock()
    if now - stream.anchor < RENEWED_EVERY:
        return False
    status = status_of(stream, tables)
    if status.behind or status.stale(now):
        return False
    return store.write(
        lambda connection: stored_streams.renew_anchor(connection, uid=stream.uid, expected=stream.anchor, at=now)
    )


def _pass(connection: sa.Connection, window: StreamWindow, *, who: str, at: datetime) -> bool:
    """Whether the offset moved: the stream is free and its offset is where the window began."""
    free = stored_streams.holder(connection, window.stream_uid) is None
    return free and advance_over(connection, window, at=at, who=who, why=stored_streams.PROVEN_EMPTY, run=who)
