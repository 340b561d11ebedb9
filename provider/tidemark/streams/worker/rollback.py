"""Rollback: what was never submitted is free again, what may be written stays pinned (PROTOCOL step 17)."""

from __future__ import annotations

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.delivery.model.transactions import TransactionState
from tidemark.model.statements import TransactionKey
from tidemark.streams.store import streams, transactions
from tidemark.streams.store.transactions import StoredTransaction

__all__ = ["give_up", "release", "rollback"]


def rollback(store: ControlStore, key: TransactionKey) -> None:
    """End this attempt: not submitted, the windows are free again; submitted, they stay pinned and the lease is given
    up at once. The next attempt or consumer then finishes them (V1).

    Harmless where there is nothing to roll back: a committed, superseded, released or unknown key.
    """
    give_up(store, key, holder=None)


def give_up(store: ControlStore, key: TransactionKey, *, holder: TransactionKey | None) -> None:
    """`rollback` by the holder of the transaction: its own key (None), or the key that took it over."""

    def move(connection: sa.Connection) -> None:
        stored = transactions.current(connection, key)
        if stored is None or stored.transaction.state is not TransactionState.OPEN:
            return
        if stored.transaction.superseded_by != holder:
            return
        if stored.transaction.submitted:
            transactions.renew_lease(connection, stored.id, holder=holder, until=store.clock())
        else:
            release(connection, store, stored)

    store.write(move)


def release(connection: sa.Connection, store: ControlStore, stored: StoredTransaction) -> StoredTransaction:
    """The windows and the key are free; only where no target can hold any of it."""
    transactions.release(connection, stored.id, at=store.clock())
    streams.free(connection, stored.id)
    return transactions.by_id(connection, stored.id)
