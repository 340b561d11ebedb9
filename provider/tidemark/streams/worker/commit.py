"""Commit: every offset moves, with evidence for every statement, or none does (PROTOCOL step 15)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.delivery.model.transactions import CommitResult, TransactionState
from tidemark.errors import CommitRefused, Superseded
from tidemark.failpoints import failpoint
from tidemark.model.statements import Evidence, Statement, TransactionKey
from tidemark.streams.store import streams, transactions
from tidemark.streams.store.transactions import StoredTransaction
from tidemark.streams.worker.offsets import delivered, move_offsets
from tidemark.streams.worker.sources import Tables, end_time, open_table
from tidemark.streams.worker.statistics import count_deliveries

__all__ = ["commit"]


def commit(
    store: ControlStore,
    key: TransactionKey,
    evidence: Sequence[Evidence] | None = None,
    *,
    tables: Tables = open_table,
    by: TransactionKey | None = None,
) -> CommitResult:
    """Move the offsets of all streams to their windows' ends, and keep the result under the key.

    `evidence`: besides what `submit` kept. `by`: the key that took the transaction over, if one did. A second run
    returns the stored result, no matter which key finished it. A transaction without statements delivers nothing and
    moves nothing: reading does not advance (R16). Raises CommitRefused, Superseded, TransactionNotFound; then no offset
    has moved.
    """
    failpoint("commit.before")
    windows = store.read(lambda connection: transactions.latest(connection, key)).transaction.windows
    times = {window.stream_uid: end_time(window, tables) for window in windows}
    result = store.write(lambda connection: _commit(connection, store, key, tuple(evidence or ()), times, by))
    failpoint("commit.stored")
    return result


def _commit(
    connection: sa.Connection,
    store: ControlStore,
    key: TransactionKey,
    given: Sequence[Evidence],
    times: Mapping[str, datetime | None],
    by: TransactionKey | None,
) -> CommitResult:
    stored = transactions.latest(connection, key)
    transaction = stored.transaction
    if transaction.result is not None:
        return transaction.result
    if transaction.superseded_by != by:
        raise Superseded(key=str(key), by=str(transaction.superseded_by or key))
    if transaction.state is not TransactionState.OPEN:
        raise CommitRefused(key=str(key), problem=f"it is {transaction.state.value}")
    evidence = _complete(stored, given)
    now = store.clock()
    windows = transaction.windows if transaction.plan.statements else ()
    move_offsets(connection, key, windows, at=now, who=transaction.owner)
    count_deliveries(connection, windows, transaction.plan.statements, evidence)
    result = CommitResult(
        key=key,
        windows=delivered(windows, at=now, end_times=times),
        serial=stored.serial,
        evidence=evidence,
        committed_at=now,
    )
    ended = TransactionState.COMMITTED if by is None else TransactionState.SUPERSEDED
    transactions.close(connection, stored.id, ended, result)
    streams.free(connection, stored.id)
    return result


def _complete(stored: StoredTransaction, given: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Evidence for every statement, of its number, digest, table id and version (I3). Raises CommitRefused."""
    transaction = stored.transaction
    if all(window.empty for window in transaction.windows):
        return ()
    found = {**stored.evidence, **{one.number: one for one in given}}
    for statement in transaction.plan.statements:
        if not _speaks_of(found.get(statement.number), statement):
            problem = f"there is no evidence that {statement.target.name} holds statement {statement.number}"
            raise CommitRefused(key=str(transaction.key), problem=problem)
    return tuple(found[statement.number] for statement in transaction.plan.statements)


def _speaks_of(evidence: Evidence | None, statement: Statement) -> bool:
    return evidence is not None and (evidence.digest, evidence.table_id, evidence.txn_version) == (
        statement.digest,
        statement.target.table_id,
        statement.txn_version,
    )
