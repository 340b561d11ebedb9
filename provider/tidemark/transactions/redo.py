"""Redo, by the user, after a target was recreated, replaced or rewound (PROTOCOL step 20, V8, V11, V12)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import sqlalchemy as sa

from tidemark.control import jobs, transactions
from tidemark.control.store import ControlStore
from tidemark.control.transactions import StoredTransaction
from tidemark.errors import NotYetSupported, SubmitRefused, TransactionNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.marks import MarkKind, parse_mark
from tidemark.model.streams import TableRef
from tidemark.model.table_log import Commit
from tidemark.model.transactions import Statement, Transaction, TransactionKey, TransactionState
from tidemark.transactions.running import same_window
from tidemark.transactions.sources import Tables, open_table
from tidemark.transactions.targets import open_target
from tidemark.transactions.versions import draw_versions, require_jobs_ended

__all__ = ["live_write", "redo"]


@dataclass(frozen=True)
class _Finding:
    """What a target holds now: its id and head, and whether the window is in it."""

    statement: Statement
    table: TableRef
    head: int
    has_window: bool


def redo(store: ControlStore, key: TransactionKey, *, tables: Tables = open_table) -> Transaction:
    """Let the stored plan be finished on the targets as they are now.

    Waits for no one: JobsMayBeAlive until every job has surely ended. Then, for each statement: a live write mark in
    the target's log is adopted, with the table id of today (V12); a target without one gets a new version, so that the
    next run writes the window into it. Nothing is written here; run the transaction again afterwards. A second run
    before that changes versions only. Raises SubmitRefused where the transaction is not open or changed meanwhile.
    """
    before = store.read(lambda connection: _ended(connection, store, key))
    tries = store.read(lambda connection: jobs.count_writes(connection, before.id))
    found = [_look(statement, tables) for statement in before.transaction.plan.statements]

    def move(connection: sa.Connection) -> Transaction:
        stored = _ended(connection, store, key)
        unchanged = stored.id == before.id and same_window(stored.transaction, before.transaction)
        if not unchanged or jobs.count_writes(connection, stored.id) != tries:
            raise SubmitRefused(key=str(key), problem="it changed while its targets were looked at")
        for finding in found:
            number = finding.statement.number
            base = finding.statement.base_version if finding.has_window else finding.head
            transactions.retarget(connection, stored.id, number, target=finding.table, base_version=base)
        draw_versions(connection, stored, [f.statement.number for f in found if not f.has_window])
        return transactions.by_id(connection, stored.id).transaction

    return store.write(move)


def live_write(commits: Iterable[Commit], app_id: str, txn_version: int) -> int | None:
    """The version whose write mark is (app_id, txn_version) and that nothing later took back, or None.

    RESTORE below it, or a new table id after it (CREATE OR REPLACE), takes it back. Raises NotYetSupported for a
    RESTORE by timestamp, whose version the log does not tell.
    """
    live: int | None = None
    for commit in commits:
        if commit.metadata is not None and commit.operation is not None and "REPLACE TABLE" in commit.operation:
            live = None
        if live is not None and commit.operation == "RESTORE" and _restored_to(commit) < live:
            live = None
        mark = parse_mark(commit.user_metadata)
        if mark is not None and (mark.app_id, mark.txn_version) == (app_id, txn_version):
            live = commit.version if mark.kind is MarkKind.WRITE else None
    return live


def _ended(connection: sa.Connection, store: ControlStore, key: TransactionKey) -> StoredTransaction:
    stored = transactions.current(connection, key)
    if stored is None:
        raise TransactionNotFound(key=str(key))
    if stored.transaction.state is not TransactionState.OPEN:
        raise SubmitRefused(key=str(key), problem=f"it is {stored.transaction.state.value}")
    require_jobs_ended(connection, stored, store.clock())
    return stored


def _look(statement: Statement, tables: Tables) -> _Finding:
    log = open_target(statement.target, tables)
    head = log.head()
    table = replace(statement.target, table_id=log.state(head).table_id)
    live = live_write(_history(log, statement, table, head), statement.app_id, statement.txn_version)
    return _Finding(statement, table, head, has_window=live is not None)


def _history(log: DeltaLog, statement: Statement, table: TableRef, head: int) -> Iterable[Commit]:
    """From the base version on; a table with another id may count its versions anew."""
    same = table.table_id == statement.target.table_id
    after = max(statement.base_version, log.earliest() - 1) if same else log.earliest() - 1
    return log.commits(after, head) if head > after else ()


def _restored_to(commit: Commit) -> int:
    version = commit.operation_parameters.get("version")
    if version is None or not str(version).strip().isdigit():
        raise NotYetSupported(
            feature=f"redo after a RESTORE by timestamp (version {commit.version})",
            instead="RESTORE the target once more, by version, and redo then.",
        )
    return int(version)
