"""Redo, by the user, after a target was recreated, replaced or rewound (PROTOCOL step 20, V8, V11, V12)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.delivery.model.marks import MarkKind, mark_of
from tidemark.delivery.model.transactions import Transaction, TransactionState
from tidemark.delivery.planning.delivery import Delivery, Finding, judge
from tidemark.delivery.planning.stream_numbers import InspectedTarget, inspect_target
from tidemark.errors import SubmitRefused, TransactionNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.statements import Statement, TransactionKey
from tidemark.model.streams import TableRef
from tidemark.model.table_log import Commit
from tidemark.streams.store import jobs, transactions
from tidemark.streams.store.transactions import StoredTransaction
from tidemark.streams.worker.job_orders import same_window
from tidemark.streams.worker.older_store import require_known
from tidemark.streams.worker.sources import Tables, open_table
from tidemark.streams.worker.targets import open_target
from tidemark.streams.worker.versions import draw_versions, require_jobs_ended

__all__ = ["redo"]


@dataclass(frozen=True)
class _Finding:
    """The state of a target now: its id, the numbers of streams, and whether the window is in it. `base`: the version
    from which the window's mark is searched.
    """

    statement: Statement
    table: TableRef
    base: int
    has_window: bool
    inspected: InspectedTarget


def redo(store: ControlStore, key: TransactionKey, *, tables: Tables = open_table) -> Transaction:
    """Let the stored plan be finished on the targets as they are now.

    Waits for no one: JobsMayBeAlive until every job has surely ended. Then, for each statement, a live write mark in
    the target's log is adopted, with the table id of today (V12). A target without one gets a new version, so that the
    next run writes the window into it. Nothing is written here; run the transaction again afterwards. A second run
    before that changes versions only. Raises SubmitRefused if the transaction is not open or changed in between. Raises
    LogIncomplete if a target's log no longer shows whether it has the window. Raises StoreOlderThanLake if a target has
    windows that this store never ordered: a new number would let them in again.
    """
    before = store.read(lambda connection: _ended(connection, store, key))
    tries = store.read(lambda connection: jobs.count_writes(connection, before.id))
    pinned, store_id = before.transaction, store.store_id
    found = [_look(statement, pinned, store_id, tables) for statement in pinned.plan.statements]
    require_known(store, [finding.inspected for finding in found if not finding.has_window], tables)

    def move(connection: sa.Connection) -> Transaction:
        stored = _ended(connection, store, key)
        unchanged = stored.id == before.id and same_window(stored.transaction, before.transaction)
        if not unchanged or jobs.count_writes(connection, stored.id) != tries:
            raise SubmitRefused(key=str(key), problem="it changed while its targets were looked at")
        for finding in found:
            number = finding.statement.number
            transactions.retarget(connection, stored.id, number, target=finding.table, base_version=finding.base)
        draw_versions(connection, stored, [f.statement.number for f in found if not f.has_window])
        return transactions.by_id(connection, stored.id).transaction

    return store.write(move)


def _ended(connection: sa.Connection, store: ControlStore, key: TransactionKey) -> StoredTransaction:
    stored = transactions.current(connection, key)
    if stored is None:
        raise TransactionNotFound(key=str(key))
    if stored.transaction.state is not TransactionState.OPEN:
        raise SubmitRefused(key=str(key), problem=f"it is {stored.transaction.state.value}")
    require_jobs_ended(connection, stored, store.clock())
    return stored


def _look(statement: Statement, transaction: Transaction, store_id: str, tables: Tables) -> _Finding:
    log = open_target(statement.target, tables)
    head = log.head()
    state = log.state(head)
    table = replace(statement.target, table_id=state.table_id)
    delivery = judge(
        mark_of(store_id, transaction.windows, statement, MarkKind.WRITE),
        expected_id=table.table_id,
        found_id=table.table_id,
        commits=_history(log, statement, table, head),
        version_at=log.version_at,
    )
    has_window = delivery.finding is Finding.DELIVERED
    base = _adopted_base(statement, delivery) if has_window else head
    return _Finding(statement, table, base, has_window, inspect_target(table, state))


def _adopted_base(statement: Statement, delivery: Delivery) -> int:
    """The base version for a mark that was found. A table with another id counts its versions from the beginning."""
    if delivery.table_id == statement.target.table_id or delivery.version is None:
        return statement.base_version
    return delivery.version - 1


def _history(log: DeltaLog, statement: Statement, table: TableRef, head: int) -> Iterable[Commit]:
    """The commits since the base version; a table with another id may count its versions from the beginning again.

    Raises LogIncomplete if log cleanup has taken some of them: the mark may have been in one.
    """
    same = table.table_id == statement.target.table_id
    after = statement.base_version if same else log.earliest() - 1
    return log.commits(after, head) if head > after else ()
