"""The streams that pin the bases of views. They are stored with their view, and users cannot move them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.materialized.model.definitions import KeptView
from tidemark.model.streams import BaseOffset, Stream, StreamMode, StreamOffset, TableRef
from tidemark.streams.model.sources import view_source
from tidemark.streams.store import streams
from tidemark.streams.worker.opening import Tables, wherever
from tidemark.streams.worker.streams import require_free

__all__ = [
    "drop_stream_of",
    "insert_stream_of",
    "newest_bases",
    "replace_stream_of",
    "require_free_stream_of",
    "stream_of_view",
]


def stream_of_view(store: ControlStore, view: KeptView) -> Stream:
    """The stream of the view. Raises StreamNotFound."""
    return store.read(lambda connection: streams.find(connection, view.stream))


def newest_bases(
    bases: Sequence[TableRef], tables: Tables, ends: Mapping[str, int], *, read: Sequence[BaseOffset] = ()
) -> tuple[BaseOffset, ...]:
    """Each base at the version in `ends`, else at its newest one, with the id that the table has now. `read`: versions
    of these tables before which none is.

    Raises TableNotFound, NotADeltaTable.
    """
    least = {base.table.table_id: base.version for base in read}
    found = []
    for base in bases:
        log = wherever(tables)(base)
        head = log.head()
        table_id = log.state(head).table_id
        version = min(head, max(ends.get(base.path, head), least.get(table_id, 0)))
        found.append(BaseOffset(TableRef(base.name, log.uri, table_id, base.addressing), version))
    return tuple(found)


def insert_stream_of(
    connection: sa.Connection, store: ControlStore, view: KeptView, bases: Sequence[BaseOffset], *, who: str, why: str
) -> None:
    """A stream on the followed query that owes the rows at `bases`. Its name must be free."""
    followed, now = view.shape.followed, store.clock()
    source = view_source(view.name, followed, tuple(base.table for base in bases)).ref
    stream = Stream(
        uid=store.new_id(),
        name=view.stream,
        source=source,
        mode=StreamMode.STANDARD,
        offset=StreamOffset(source.table_id, sum(base.version for base in bases)),
        initial_rows_pending=True,
        serial=0,
        created_at=now,
        anchor=now,
        view=followed,
        view_bases=tuple(bases),
    )
    streams.insert(connection, stream, who=who, why=why)


def replace_stream_of(store: ControlStore, view: KeptView, bases: Sequence[BaseOffset], *, who: str, why: str) -> None:
    """Another stream in place of the view's own, which owes all rows at `bases`: a whole refresh follows.

    A second run replaces it again. Raises TransactionOpen while a refresh holds the old one.
    """

    def replace(connection: sa.Connection) -> None:
        old = streams.lookup(connection, view.stream)
        if old is not None:
            require_free(connection, store, old, "replaced")
            streams.drop(connection, old, at=store.clock(), who=who, why=f"replaced: {why}")
        insert_stream_of(connection, store, view, bases, who=who, why=why)

    store.write(replace)


def require_free_stream_of(connection: sa.Connection, store: ControlStore, view: KeptView, *, action: str) -> None:
    """Nothing, or TransactionOpen while a refresh holds the view's stream."""
    stream = streams.lookup(connection, view.stream)
    if stream is not None:
        require_free(connection, store, stream, action)


def drop_stream_of(connection: sa.Connection, store: ControlStore, view: KeptView, *, who: str, action: str) -> None:
    """End the view's stream. Raises TransactionOpen while a refresh holds it."""
    stream = streams.lookup(connection, view.stream)
    if stream is not None:
        require_free(connection, store, stream, action)
        streams.drop(connection, stream, at=store.clock(), who=who, why=f"its view was {action}")
