"""Takeover: what another key submitted and left is finished whole, with its stored plan (PROTOCOL step 4, V13)."""

from __future__ import annotations

import sqlalchemy as sa

from tidemark.control import transactions
from tidemark.control.store import ControlStore
from tidemark.errors import StreamLocked, TransactionNotFound
from tidemark.model.transactions import CommitResult, Transaction, TransactionKey, TransactionState
from tidemark.transactions.commit import commit
from tidemark.transactions.limits import DEFAULT_LIMITS, JobPlaces, Limits, RunJob
from tidemark.transactions.rollback import give_up
from tidemark.transactions.sources import Tables, open_table
from tidemark.transactions.submit import submit
from tidemark.transactions.versions import renumber_fenced

__all__ = ["takeover"]


def takeover(
    store: ControlStore,
    key: TransactionKey,
    *,
    by: TransactionKey,
    owner: str,
    run: RunJob,
    places: JobPlaces,
    tables: Tables = open_table,
    limits: Limits = DEFAULT_LIMITS,
) -> CommitResult:
    """Finish the open transaction of `key`, all its streams and statements; it ends superseded, with `by` named.

    A second run goes on where the first stopped, or returns the result. On failure the lease is given up, so that the
    next consumer may try. Raises StreamLocked while the holder's lease is valid, and what submit and commit raise.
    """
    taken = store.write(lambda connection: _take(connection, store, key, by, owner, limits))
    if taken.result is not None:
        return taken.result
    finished = False
    try:
        submit(store, taken, run=run, places=places, limits=limits)
        result = commit(store, key, tables=tables, by=by)
        finished = True
    finally:
        if not finished:
            give_up(store, key, holder=by)
    return result


def _take(
    connection: sa.Connection,
    store: ControlStore,
    key: TransactionKey,
    by: TransactionKey,
    owner: str,
    limits: Limits,
) -> Transaction:
    """The lease has run out, or `by` has it already. One that has ended is handed back as it is."""
    stored = transactions.current(connection, key)
    if stored is None:
        raise TransactionNotFound(key=str(key))
    if stored.transaction.state is not TransactionState.OPEN:
        return stored.transaction
    now = store.clock()
    if stored.transaction.lease_until > now and stored.transaction.superseded_by != by:
        held = ", ".join(window.stream_name for window in stored.transaction.windows)
        raise StreamLocked(stream=held, holder=str(key), until=stored.transaction.lease_until)
    stored = renumber_fenced(connection, stored, now)
    transactions.take_over(connection, stored.id, by=by, owner=owner, until=now + limits.lease)
    return transactions.by_id(connection, stored.id).transaction
