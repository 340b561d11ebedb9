"""Streams follow a table that was renamed or moved: offset, uid and numbers stay (R90)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.delivery.model.transactions import Transaction
from tidemark.errors import LakeError, RelocationRefused, SourceError, SourceMoved
from tidemark.model.streams import Stream, StreamWindow, TableRef
from tidemark.model.views import ViewQuery
from tidemark.streams.store import streams, transactions, view_bases
from tidemark.streams.worker.opening import Tables

__all__ = [
    "FOLLOWED_BY",
    "follow",
    "follow_windows",
    "followed",
    "relocate",
    "relocate_bases",
    "was_on",
    "where_they_are",
]

FOLLOWED_BY = "tidemark"
"""Who moved the stream, in its history: nobody asked for it."""

log = logging.getLogger(__name__)


def relocate(
    connection: sa.Connection, store: ControlStore, stream: Stream, to: TableRef, *, who: str, why: str = ""
) -> Stream:
    """Point a stream, as read in this transaction, and the window that is open on it at another place of its table. A
    second run changes nothing. Raises RelocationRefused if the place has another table, or for a view.
    """
    if stream.source == to:
        return stream
    words = f"{_from(stream.source.name)}{stream.source.path})" + (f": {why}" if why else "")
    if stream.view is not None:
        problem = "it reads a view; rename its tables back, or re-base the stream onto the view as it is now"
        raise RelocationRefused(stream=stream.name, problem=problem)
    if not streams.relocate(connection, stream, to, at=store.clock(), who=who, why=words):
        problem = f"{to.path} has the table {to.table_id}, and its own is {stream.source.table_id}"
        raise RelocationRefused(stream=stream.name, problem=f"{problem}; to continue with another table, re-base it")
    held_by = streams.holder(connection, stream.uid)
    if held_by is not None:
        transactions.relocate_window(connection, held_by, stream.uid, to)
    return replace(stream, source=to)


def relocate_bases(
    connection: sa.Connection, store: ControlStore, stream: Stream, places: Mapping[str, TableRef], view: ViewQuery
) -> None:
    """Point a stream on a query at other places of its base tables, and the window that is open on it, too.

    `stream`: as read in this transaction. `places`: the path of a base → where it is; `view`: the query over these. A
    second run changes nothing.
    """
    bases = tuple(replace(base, table=places.get(base.table.path, base.table)) for base in stream.view_bases)
    if bases == stream.view_bases:
        return
    pairs = zip(stream.view_bases, bases, strict=True)
    why = ", ".join(f"{_from(old.table.name)}{old.table.path})" for old, new in pairs if old != new)
    view_bases.relocate_bases(connection, stream, bases, view, at=store.clock(), who=FOLLOWED_BY, why=why)
    held_by = streams.holder(connection, stream.uid)
    if held_by is not None:
        view_bases.relocate_bases_of_window(connection, held_by, stream.uid, places)


def follow(store: ControlStore, stream: Stream, moved: SourceMoved, tables: Tables) -> Stream:
    """The stream at the place to which its table has moved, and with it the window that a transaction holds of it.

    A second run changes nothing. Raises RelocationRefused if the stream reads a view, or if the table at its new place
    lacks versions that it has read.
    """
    _require_place(stream.name, moved.to, tables, needed=stream.offset.version, on_view=stream.view is not None)
    after = store.write(lambda connection: _follow(connection, store, stream.uid, moved.to)) or stream
    log.warning("Stream %s continues at %s: its table %s was moved there.", stream.name, moved.to.path, moved.to.name)
    return after


def followed(store: ControlStore, name: str, tables: Tables) -> Stream:
    """The stream of that name, after it has followed its table. Raises StreamNotFound, TableNotFound, NotADeltaTable,
    and what `follow` raises.
    """
    stream = store.read(lambda connection: streams.find(connection, name))
    try:
        for base in stream.bases:
            tables(base.table)
    except SourceMoved as moved:
        return follow(store, stream, moved, tables)
    return stream


def was_on(store: ControlStore, stream: Stream, name: str) -> bool:
    """Whether the stream's table had that name before it was renamed, by the stream's history."""
    moves = store.read(lambda connection: streams.history(connection, stream.uid))
    return any(move.why.startswith(_from(name)) for move in moves)


def follow_windows(store: ControlStore, transaction: Transaction, tables: Tables) -> Transaction:
    """The transaction with its windows where their tables are now, in the store, too; the streams are moved with them.

    A second run changes nothing. A table that cannot be read for another reason is left to the job. Raises
    RelocationRefused as `follow` does.
    """
    found = where_they_are(transaction.windows, tables)
    if found == transaction.windows:
        return transaction
    store.write(lambda connection: _follow_windows(connection, store, transaction, found))
    return replace(transaction, windows=found)


def where_they_are(windows: tuple[StreamWindow, ...], tables: Tables) -> tuple[StreamWindow, ...]:
    """The windows where their tables are now. Raises RelocationRefused as `follow` does."""
    return tuple(_where_it_is(window, tables) for window in windows)


def _from(name: str) -> str:
    return f"relocated from {name} ("


def _follow(connection: sa.Connection, store: ControlStore, uid: str, to: TableRef) -> Stream | None:
    """The stream at its new place; None if it was dropped in between."""
    known = streams.with_uid(connection, uid)
    return None if known is None or known.dropped else relocate(connection, store, known.stream, to, who=FOLLOWED_BY)


def _follow_windows(
    connection: sa.Connection, store: ControlStore, transaction: Transaction, windows: tuple[StreamWindow, ...]
) -> None:
    stored = transactions.current(connection, transaction.key)
    for before, window in zip(transaction.windows, windows, strict=True):
        if before != window and stored is not None:
            transactions.relocate_window(connection, stored.id, window.stream_uid, window.source)
            _follow(connection, store, window.stream_uid, window.source)


def _where_it_is(window: StreamWindow, tables: Tables) -> StreamWindow:
    try:
        for base in window.bases:
            tables(base.table)
    except SourceMoved as moved:
        on_view = window.view is not None
        _require_place(window.stream_name, moved.to, tables, needed=window.end, on_view=on_view)
        return replace(window, source=moved.to)
    except (SourceError, LakeError, OSError) as error:  # the job says it, if it meets it, too
        log.debug("The table of the window of %s was not looked at: %s", window.stream_name, error)
    return window


def _require_place(stream: str, to: TableRef, tables: Tables, *, needed: int, on_view: bool) -> None:
    """The table can be read there as it was before. Raises RelocationRefused."""
    if on_view:
        problem = f"it reads a view, and a table of it was moved to {to.path}"
        raise RelocationRefused(stream=stream, problem=f"{problem}; rename the table back, or re-base the stream")
    head = tables(to.path).head()
    if head < needed:
        problem = f"its table exists at {to.path} only up to version {head}, and version {needed} is needed"
        raise RelocationRefused(stream=stream, problem=f"{problem}; restore the table, or re-base the stream")
