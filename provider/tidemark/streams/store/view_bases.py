"""The base tables of streams on queries, at the places where they are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import sqlalchemy as sa

from tidemark.model.codec import from_json, to_json
from tidemark.model.streams import BaseOffset, Stream, StreamWindow, TableRef
from tidemark.model.views import ViewQuery
from tidemark.streams.store.schema import streams, windows
from tidemark.streams.store.streams import keep_offset

__all__ = ["relocate_bases", "relocate_bases_of_window"]


def relocate_bases(
    connection: sa.Connection,
    stream: Stream,
    bases: Sequence[BaseOffset],
    view: ViewQuery,
    *,
    at: datetime,
    who: str,
    why: str,
) -> None:
    """The base tables of the stream, as read in this transaction, exist elsewhere. The offset stays, and the move is
    logged.
    """
    values = {"view_bases": to_json(tuple(bases)), "view_query": to_json(view)}
    connection.execute(streams.update().where(streams.c.uid == stream.uid).values(values))
    keep_offset(connection, stream, at=at, who=who, why=why, run=None)


def relocate_bases_of_window(
    connection: sa.Connection, transaction_id: str, stream_uid: str, places: Mapping[str, TableRef]
) -> None:
    """The pinned window of the stream is read where its bases are stored now; its bounds stay. `places`: the path that
    each had → where it is.
    """
    own = (windows.c.transaction_id == transaction_id) & (windows.c.stream_uid == stream_uid)
    pinned = from_json(StreamWindow, connection.execute(sa.select(windows.c.pinned).where(own)).scalar_one())
    bases = tuple(replace(base, table=places.get(base.table.path, base.table)) for base in pinned.view_bases)
    connection.execute(windows.update().where(own).values(pinned=to_json(replace(pinned, view_bases=bases))))
