"""Finish, on request, what was submitted on a stream and left (PROTOCOL step 4)."""

from __future__ import annotations

import sqlalchemy as sa

from tidemark.delivery.model.transactions import Transaction, TransactionState
from tidemark.model.statements import TransactionKey
from tidemark.streams.store import streams, transactions
from tidemark.streams.store.transactions import StoredTransaction
from tidemark.streams.worker.begin import make_way
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.takeover import takeover

__all__ = ["finish"]


def finish(runtime: Runtime, stream: str, *, by: TransactionKey, owner: str) -> Transaction | None:
    """End the transaction that holds the stream with its stored plan, all its streams and statements; None: none does.

    The answer says how it ended: superseded by `by`, with its result, or released, because it was never submitted. A
    second run finds none. Raises StreamNotFound, StreamLocked while the holder's lease is valid, and what submit and
    commit raise; then it is still open.
    """
    store = runtime.store

    def look(connection: sa.Connection) -> StoredTransaction | None:
        found = streams.find(connection, stream)
        held_by = streams.holder(connection, found.uid)
        if held_by is None:
            return None
        make_way(connection, store, found, by)
        return transactions.by_id(connection, held_by)

    held = store.write(look)
    if held is None:
        return None
    key = held.transaction.key
    if held.transaction.state is TransactionState.OPEN:
        takeover(runtime, key, by=by, owner=owner, give_back=False)
    return store.read(lambda connection: transactions.by_id(connection, held.id).transaction)
