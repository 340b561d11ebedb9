"""Committed windows that held nothing: remembered under their keys for a while, then their rows are used again.

A stream that is looked at each minute has a hundred such windows for each that delivers. Rows are updated and not
deleted, since tasks need no right to delete.
"""

from __future__ import annotations

import uuid
from datetime import datetime

import sqlalchemy as sa

from tidemark.delivery.model.transactions import Transaction
from tidemark.model.codec import to_json
from tidemark.streams.store import transactions
from tidemark.streams.store.schema import transactions as rows
from tidemark.streams.store.schema import windows

__all__ = ["insert"]


def insert(
    connection: sa.Connection, transaction_id: str, transaction: Transaction, serial: int, *, forget_before: datetime
) -> None:
    """Keep a transaction of empty windows, committed at once, under its key. It takes the rows of an earlier one of the
    same streams that was committed before `forget_before`. The key of that one is free again then. Without such rows it
    gets new ones.
    """
    of = _streams_of(transaction)
    old = sa.select(rows.c.id).where(rows.c.nothing_of == of, rows.c.closed_at < forget_before)
    used = connection.execute(old.order_by(rows.c.closed_at).limit(1)).scalar_one_or_none()
    if used is None:
        transactions.insert(connection, transaction_id, transaction, serial)
        connection.execute(rows.update().where(rows.c.id == transaction_id).values(nothing_of=of))
        return
    connection.execute(rows.update().where(rows.c.id == used).values(transactions.columns_of(transaction, serial)))
    for position, window in enumerate(transaction.windows):
        own = (windows.c.transaction_id == used) & (windows.c.position == position)
        moved = {"start_version": window.start, "end_version": window.end, "pinned": to_json(window)}
        connection.execute(windows.update().where(own).values(moved))


def _streams_of(transaction: Transaction) -> str:
    """One name for the streams in this order: the uid of one stream, for several a digest of theirs."""
    uids = [window.stream_uid for window in transaction.windows]
    return uids[0] if len(uids) == 1 else str(uuid.uuid5(uuid.NAMESPACE_OID, "/".join(uids)))
