"""Takeover: what another key submitted and left is finished whole, with its stored plan (PROTOCOL step 4, V13)."""

from __future__ import annotations

import logging

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.delivery.model.transactions import CommitResult, Transaction, TransactionState
from tidemark.errors import CatalogTableMoved, StreamLocked
from tidemark.errors.lasting import OF_THE_PLAN
from tidemark.model.statements import TransactionKey, WriteAs
from tidemark.streams.store import transactions
from tidemark.streams.worker.clusters import DriverGoesOn
from tidemark.streams.worker.commit import commit
from tidemark.streams.worker.limits import Limits
from tidemark.streams.worker.older_store import require_knows
from tidemark.streams.worker.rollback import give_up
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.submit import submit
from tidemark.streams.worker.unwritten import let_go
from tidemark.streams.worker.versions import renumber_fenced

__all__ = ["locked", "takeover"]

log = logging.getLogger(__name__)


def takeover(
    runtime: Runtime, key: TransactionKey, *, by: TransactionKey, owner: str, give_back: bool = True
) -> CommitResult | None:
    """Finish the open transaction of `key`, all its streams and statements; it ends superseded, with `by` named.

    `give_back`: if its plan cannot be carried out and no target has any of it, it is released. Its streams are then
    free, and the answer is None. Not so with a function, which may only be missing here. A second run continues where
    the first stopped, or returns the result. On another failure the lease is given up, so that the next consumer may
    try. Raises StreamLocked while the holder's lease is valid, and what submit and commit raise.
    """
    store, tables = runtime.store, runtime.tables
    taken = store.write(lambda connection: _take(connection, store, key, by, owner, runtime.limits))
    if taken is None or taken.result is not None:
        return None if taken is None else taken.result
    log.info("Finishing transaction %s, which was left open.", key)
    try:
        require_knows(store, taken, tables)
        submit(runtime, taken)
        return commit(store, key, tables=tables, by=by)
    except DriverGoesOn:
        raise
    except BaseException as error:
        if give_back and _is_of_the_plan(error, taken) and let_go(store, key, holder=by, tables=tables):
            log.warning("Transaction %s can never be finished, and was taken back: %s", key, error)
            return None
        give_up(store, key, holder=by)
        _tell(error, taken)
        raise


def _is_of_the_plan(error: BaseException, taken: Transaction) -> bool:
    functions = any(statement.write.write_as is WriteAs.FUNCTION for statement in taken.plan.statements)
    return isinstance(error, CatalogTableMoved) or (isinstance(error, OF_THE_PLAN) and not functions)


def locked(held: Transaction, stream: str) -> StreamLocked:
    """That `held` holds the stream: who has it, and until when."""
    holder = held.superseded_by or held.key
    return StreamLocked(stream=stream, holder=str(holder), owner=held.owner, until=held.lease_until)


def _tell(error: BaseException, taken: Transaction) -> None:
    """Note on the error that it is of a transaction that its receiver did not begin."""
    names = ", ".join(window.stream_name for window in taken.windows)
    said = (
        f"Raised while transaction {taken.key}, left open on {names}, was finished. It goes first, since targets may"
        " hold a part of it. Fix the cause, or correct its own task and run that again; then this one continues."
    )
    error.add_note(said)
    log.error("%s: %s", said, error)


def _take(
    connection: sa.Connection,
    store: ControlStore,
    key: TransactionKey,
    by: TransactionKey,
    owner: str,
    limits: Limits,
) -> Transaction | None:
    """The lease has run out, or `by` has it already. An ended transaction is returned as it is; None: released."""
    stored = transactions.current(connection, key)
    if stored is None:
        return None
    if stored.transaction.state is not TransactionState.OPEN:
        return stored.transaction
    now = store.clock()
    if stored.transaction.lease_until > now and stored.transaction.superseded_by != by:
        raise locked(stored.transaction, ", ".join(window.stream_name for window in stored.transaction.windows))
    stored = renumber_fenced(connection, stored, now)
    transactions.take_over(connection, stored.id, by=by, owner=owner, until=now + limits.lease)
    return transactions.by_id(connection, stored.id).transaction
