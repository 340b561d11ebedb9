"""Streams as users define, move and end them; refused while a transaction is open on them (PROTOCOL step 21)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import sqlalchemy as sa

from tidemark.changes.planning.source_keys import require_fitting_mode
from tidemark.control.store import ControlStore
from tidemark.delivery.model.transactions import Transaction
from tidemark.errors import InvalidArgument, StreamExists, TransactionNotFound, TransactionOpen
from tidemark.model.streams import BaseOffset, OffsetMove, Stream, StreamMode, StreamOffset, TableRef
from tidemark.model.views import ViewQuery
from tidemark.streams.planning.names import is_of_a_view, require_own, require_stream_name
from tidemark.streams.store import streams, transactions
from tidemark.streams.store.transactions import StoredTransaction

__all__ = [
    "advance_stream",
    "comment_on_stream",
    "create_stream",
    "drop_stream",
    "get_stream",
    "list_streams",
    "newest_transactions",
    "open_transaction",
    "require_free",
    "stream_history",
    "stream_transactions",
]


def create_stream(
    store: ControlStore,
    *,
    name: str,
    source: TableRef,
    mode: StreamMode,
    at_version: int,
    who: str,
    initial_rows: bool = False,
    or_replace: bool = False,
    if_not_exists: bool = False,
    comment: str | None = None,
    view: ViewQuery | None = None,
    view_bases: Sequence[BaseOffset] = (),
    keys: Sequence[str] = (),
) -> Stream:
    """A stream whose offset is `at_version`: that version and all before lie behind it (R1).

    For a view, `source` names it and has its digest for an id. `view_bases` say where the stream starts in each base
    table, and `at_version` is their sum. `keys`: the columns that identify a row in place of its row id.

    `if_not_exists` keeps an existing stream and its offset, so a second run changes nothing. `or_replace` ends it and
    creates another one with a new uid (V5, R7). Raises StreamExists, TransactionOpen, InvalidArgument, NotYetSupported.
    """
    if or_replace and if_not_exists:
        raise InvalidArgument(argument="or_replace", value=True, problem="it contradicts if_not_exists (R7)")
    require_fitting_mode(mode, keys if view is None else (), on_view=view is not None)
    require_stream_name(name)
    now = store.clock()
    wanted = Stream(
        uid=store.new_id(),
        name=name,
        source=source,
        mode=mode,
        offset=StreamOffset(source.table_id, at_version),
        initial_rows_pending=initial_rows,
        serial=0,
        created_at=now,
        anchor=now,
        comment=comment,
        view=view,
        view_bases=tuple(view_bases),
        keys=tuple(keys),
    )

    return store.write(lambda connection: _create(connection, store, wanted, who, or_replace, if_not_exists))


def drop_stream(store: ControlStore, name: str, who: str) -> Stream:
    """End the stream and return what it was; its history stays. Raises StreamNotFound, TransactionOpen,
    StreamOfAView.
    """
    require_own([name])

    def drop(connection: sa.Connection) -> Stream:
        stream = streams.find(connection, name)
        require_free(connection, store, stream, "dropped")
        streams.drop(connection, stream, at=store.clock(), who=who, why="dropped")
        return stream

    return store.write(drop)


def comment_on_stream(store: ControlStore, name: str, comment: str | None) -> Stream:
    """Give the stream another comment, None for none; its place stays. Raises StreamNotFound, StreamOfAView."""
    require_own([name])

    def comment_on(connection: sa.Connection) -> Stream:
        stream = streams.find(connection, name)
        streams.set_comment(connection, uid=stream.uid, comment=comment)
        return replace(stream, comment=comment)

    return store.write(comment_on)


def advance_stream(
    store: ControlStore, name: str, to_version: int, who: str, why: str, *, bases: Sequence[BaseOffset] = ()
) -> Stream:
    """Skip unread changes up to `to_version`; logged. Initial rows that are still owed are those at the new offset.

    `bases`: for a view, the place in each base table; `to_version` is their sum.

    A second run finds the offset there and logs that too. Raises InvalidArgument for a step back (I4), StreamNotFound,
    TransactionOpen, StreamOfAView.
    """
    require_own([name])

    def advance(connection: sa.Connection) -> Stream:
        stream = streams.find(connection, name)
        require_free(connection, store, stream, "advanced")
        now = store.clock()
        moved = streams.advance_offset(
            connection,
            uid=stream.uid,
            expected=stream.offset.version,
            to=to_version,
            bases=_forward(stream, bases),
            at=now,
            who=who,
            why=why,
            run=None,
        )
        if not moved:
            problem = f"the offset is {stream.offset.version} and never moves back"
            raise InvalidArgument(argument="to_version", value=to_version, problem=problem)
        there = replace(stream.offset, version=to_version)
        return replace(stream, offset=there, anchor=now, view_bases=tuple(bases) or stream.view_bases)

    return store.write(advance)


def get_stream(store: ControlStore, name: str) -> Stream:
    """The stream of that name, in any case (R12). Raises StreamNotFound."""
    return store.read(lambda connection: streams.find(connection, name))


def list_streams(store: ControlStore) -> tuple[Stream, ...]:
    """Every stream that is not dropped, by name; without those that belong to views."""
    return tuple(stream for stream in store.read(streams.live) if not is_of_a_view(stream.name))


def stream_history(store: ControlStore, name: str) -> tuple[OffsetMove, ...]:
    """Every move of the offset since creation, oldest first: who, when, why, and in which run."""
    return store.read(lambda connection: streams.history(connection, streams.find(connection, name).uid))


def open_transaction(store: ControlStore, name: str) -> Transaction:
    """The transaction that holds the stream. Raises StreamNotFound, TransactionNotFound where none does."""

    def look(connection: sa.Connection) -> Transaction:
        held_by = streams.holder(connection, streams.find(connection, name).uid)
        if held_by is None:
            raise TransactionNotFound(key=f"on stream {name}")
        return transactions.by_id(connection, held_by).transaction

    return store.read(look)


def stream_transactions(store: ControlStore, name: str, limit: int = 20) -> tuple[Transaction, ...]:
    """The newest transactions that took from the stream, newest first."""
    return tuple(stored.transaction for stored in newest_transactions(store, name, limit=limit))


def newest_transactions(store: ControlStore, name: str, *, limit: int) -> tuple[StoredTransaction, ...]:
    """The same with what the store knows of each besides. Raises StreamNotFound."""
    return store.read(lambda connection: transactions.of_stream(connection, streams.find(connection, name).uid, limit))


def _forward(stream: Stream, bases: Sequence[BaseOffset]) -> Sequence[BaseOffset]:
    """The places, if none is behind the stream's. Raises InvalidArgument."""
    if len(bases) != len(stream.view_bases):
        problem = f"it takes a place in each of its {len(stream.view_bases)} base tables, not {len(bases)}"
        raise InvalidArgument(argument="bases", value=stream.name, problem=problem)
    for stands, to in zip(stream.view_bases, bases, strict=True):
        if to.version < stands.version:
            problem = f"its offset in {to.table.name} is {stands.version} and never moves back"
            raise InvalidArgument(argument="bases", value=to.version, problem=problem)
    return bases


def _create(
    connection: sa.Connection, store: ControlStore, wanted: Stream, who: str, or_replace: bool, if_not_exists: bool
) -> Stream:
    existing = streams.lookup(connection, wanted.name)
    if existing is not None:
        if if_not_exists:
            return existing
        if not or_replace:
            raise StreamExists(stream=existing.name, source=existing.source.name)
        require_free(connection, store, existing, "replaced")
        streams.drop(connection, existing, at=wanted.created_at, who=who, why="replaced")
    streams.insert(connection, wanted, who=who)
    return wanted


def require_free(connection: sa.Connection, store: ControlStore, stream: Stream, action: str) -> None:
    """No transaction is open (V4, V5); one that was never submitted and whose lease has run out is released first."""
    held_by = streams.holder(connection, stream.uid)
    if held_by is None:
        return
    held = transactions.by_id(connection, held_by)
    if held.transaction.submitted or held.transaction.lease_until > store.clock():
        raise TransactionOpen(stream=stream.name, action=action, key=str(held.transaction.key))
    transactions.release(connection, held.id, at=store.clock())
    streams.free(connection, held.id)
