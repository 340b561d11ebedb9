"""The highest lags of streams in the past, by their newest consumptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import pairwise

import sqlalchemy as sa

from tidemark.control.newest import newest_of_each
from tidemark.control.usual_lags import NEWEST
from tidemark.delivery.model.transactions import CommitResult, TransactionState
from tidemark.model.codec import from_json
from tidemark.streams.store.schema import streams, transactions, windows

__all__ = ["stream_highs"]

_held, _window = transactions.c, windows.c


def stream_highs(connection: sa.Connection, uids: Sequence[str]) -> Mapping[str, Sequence[float]]:
    """The age of the oldest change that each consumption took, when it ended. Replays are left out, and so are windows
    that held nothing.
    """
    columns = (_window.stream_uid.label("uid"), _window.start_version, _window.end_version, streams.c.name)
    query = (
        sa.select(*columns, _held.opened_at, _held.closed_at.label("at"), _held.result)
        .join(transactions, _held.id == _window.transaction_id)
        .join(streams, streams.c.uid == _window.stream_uid)
        .where(_held.state == TransactionState.COMMITTED.value, _held.nothing_of.is_(None))
        .where(_held.closed_at.is_not(None), _held.result.is_not(None))
    )
    found = newest_of_each(
        connection, query, uids, of=_window.stream_uid, order=(_held.opened_at, _held.id), most=NEWEST
    )
    return {uid: [_high(*pair) for pair in pairwise(_moving(rows))] for uid, rows in found.items()}


def _moving(rows: Sequence[sa.RowMapping]) -> Iterator[sa.RowMapping]:
    """Consumptions that took newer versions than all before them."""
    reached = -1
    for row in rows:
        if row["end_version"] > max(reached, row["start_version"]):
            reached = row["end_version"]
            yield row


def _high(before: sa.RowMapping, row: sa.RowMapping) -> float:
    """Of one version its age is stored. The oldest of more is no older than the read before, which did not see it."""
    taken: tuple[str, int, int] = (row["name"], row["start_version"], row["end_version"])
    if taken[2] == taken[1] + 1:
        for one in from_json(CommitResult, row["result"]).windows:
            if (one.stream, one.from_version, one.to_version) == taken and one.lag_seconds is not None:
                return max(0.0, one.lag_seconds)
    since: timedelta = row["at"] - before["opened_at"]
    return max(0.0, since.total_seconds())
