"""All offsets of a transaction move together, or none (I8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa

from tidemark.delivery.model.transactions import DeliveredWindow
from tidemark.errors import CommitRefused
from tidemark.model.statements import TransactionKey
from tidemark.model.streams import BaseOffset, StreamWindow, WindowKind
from tidemark.streams.store import streams

__all__ = ["advance_over", "delivered", "move_offsets"]


def move_offsets(
    connection: sa.Connection,
    key: TransactionKey,
    windows: Sequence[StreamWindow],
    *,
    at: datetime,
    who: str,
    why: str | None = None,
) -> None:
    """Compare-and-set of every stream from its window's start to its end (step 15). Raises CommitRefused.

    A replayed window moves nothing; that it was replayed is kept in the stream's history. `why`: None: consumed.
    """
    for window in windows:
        if window.replayed:
            stands = streams.by_uid(connection, window.stream_uid)
            replayed = f"replayed ({window.start}, {window.end}]"
            streams.keep_offset(connection, stands, at=at, who=who, why=why or replayed, run=str(key))
        elif not _move(connection, key, window, at, who, why):
            found = streams.by_uid(connection, window.stream_uid).offset.version
            problem = f"stream {window.stream_name} is at {found}, not at {window.start}, or is another stream now"
            raise CommitRefused(key=str(key), problem=problem)


def delivered(
    windows: Sequence[StreamWindow], *, at: datetime, end_times: Mapping[str, datetime | None]
) -> tuple[DeliveredWindow, ...]:
    """The delivery of each window; without a lag if it was empty or its log no longer shows it."""
    return tuple(
        DeliveredWindow(
            stream=window.stream_name,
            from_version=window.start,
            to_version=window.end,
            initial_rows=window.kind is WindowKind.INITIAL_ROWS,
            lag_seconds=_lag(window, at, end_times.get(window.stream_uid)),
        )
        for window in windows
    )


def advance_over(
    connection: sa.Connection, window: StreamWindow, *, at: datetime, who: str, why: str, run: str | None
) -> bool:
    """Compare-and-set of the stream from the window's start to its end, in each table that it reads. True if it was at
    the start.
    """
    return streams.advance_offset(
        connection,
        uid=window.stream_uid,
        expected=window.start,
        to=window.end,
        bases=tuple(BaseOffset(base.table, base.end) for base in window.view_bases),
        at=at,
        who=who,
        why=why,
        run=run,
    )


def _move(
    connection: sa.Connection, key: TransactionKey, window: StreamWindow, at: datetime, who: str, why: str | None
) -> bool:
    if window.kind is WindowKind.INITIAL_ROWS:
        done = why or "initial rows delivered"
        return streams.settle_initial_rows(
            connection, uid=window.stream_uid, expected=window.start, at=at, who=who, why=done, run=str(key)
        )
    return advance_over(connection, window, at=at, who=who, why=why or "consumed", run=str(key))


def _lag(window: StreamWindow, at: datetime, end: datetime | None) -> float | None:
    return None if end is None or window.empty else max(0.0, (at - end).total_seconds())
