"""CREATE TABLE … AS SELECT … FROM streams: the table is created once, then filled by a write like any other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from tidemark.control.store import ControlStore
from tidemark.delivery.model.transactions import CommitResult, Transaction
from tidemark.errors import NotADeltaTable, TableNotFound, TransactionNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.statements import PlannedWrite, TransactionKey
from tidemark.streams.planning.bounds import UNBOUNDED, Bound
from tidemark.streams.planning.stream_sql.tables import CREATED_FOR, CreatedTable
from tidemark.streams.store import transactions
from tidemark.streams.worker.begin import begin
from tidemark.streams.worker.consume import deliver, tell_opened
from tidemark.streams.worker.finish import finish
from tidemark.streams.worker.outcomes import Consumed, Opened
from tidemark.streams.worker.rollback import rollback
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.streams import open_transaction, stream_transactions

__all__ = ["CreatingRun", "create_and_consume", "finish_left", "is_left_empty", "own_log"]

Open = Callable[[], DeltaLog]
"""Opens the log of the statement's table. Raises TableNotFound, NotADeltaTable."""


@dataclass(frozen=True)
class CreatingRun:
    """One run of the statement. `create` makes the table without rows, if it does not exist; `writes` plans the INSERT
    into the table that exists.
    """

    table: CreatedTable
    open: Open
    create: Callable[[], object]
    writes: Callable[[], Sequence[PlannedWrite]]


def create_and_consume(
    runtime: Runtime,
    run: CreatingRun,
    *,
    key: TransactionKey,
    streams: Sequence[str],
    owner: str,
    bound: Bound = UNBOUNDED,
) -> Consumed | None:
    """Create the table without rows, then take what the streams have and write it once, as `consume` does.

    A second call with the same key finishes the first one, or returns its result. Another run finishes one that was
    left, or fills a table that was left empty. None: the table exists, and nothing of it is left to do; then no stream
    moves. Raises what `create` and `consume` raise, and StreamLocked while the run that fills the table may be alive.
    """
    if runtime.store.read(lambda connection: transactions.current(connection, key)) is None:
        _create_if_absent(run)
        if not is_left_empty(run.open, run.table):
            return _finished(runtime, run, key=key, streams=streams, owner=owner)
    begun = begin(runtime, key=key, streams=streams, writes=run.writes(), owner=owner, bound=bound)
    if isinstance(begun, Opened):
        if not begun.transaction.submitted and not is_left_empty(run.open, run.table):  # somebody else was quicker
            rollback(runtime.store, key)
            return _finished(runtime, run, key=key, streams=streams, owner=owner)
        tell_opened(runtime, begun)
    return deliver(runtime, begun)


def own_log(opened: Open, table: CreatedTable) -> DeltaLog | None:
    """The log of the table, if the statement created it."""
    try:
        log = opened()
    except (TableNotFound, NotADeltaTable):
        return None
    return log if log.state().metadata.configuration.get(CREATED_FOR) == table.created_for else None


def is_left_empty(opened: Open, table: CreatedTable) -> bool:
    """Whether the table is the one that the statement created, and has nothing yet."""
    log = own_log(opened, table)
    return log is not None and log.head() == 0


def finish_left(
    runtime: Runtime, log: DeltaLog, streams: Sequence[str], *, by: TransactionKey, owner: str
) -> CommitResult | None:
    """Finish a run of the statement that had submitted its INSERT and left it. The answer is its result; None without
    such a run. Raises StreamLocked while that run may be alive, and what `finish` raises.
    """
    table_id = log.state().table_id
    for stream in streams:
        with suppress(TransactionNotFound):
            if _writes(open_transaction(runtime.store, stream), table_id):
                ended = finish(runtime, stream, by=by, owner=owner)
                return None if ended is None else ended.result
    return None


def _create_if_absent(run: CreatingRun) -> None:
    try:
        run.open()
    except TableNotFound:
        run.create()
    except NotADeltaTable:
        return


def _finished(
    runtime: Runtime, run: CreatingRun, *, key: TransactionKey, streams: Sequence[str], owner: str
) -> Consumed | None:
    """The outcome of an earlier run of the statement that `key` finishes, or has finished; None if there is none."""
    log = own_log(run.open, run.table)
    if log is None:
        return None
    result = finish_left(runtime, log, streams, by=key, owner=owner)
    result = result or _finished_before(runtime.store, streams, key, log.state().table_id)
    return None if result is None else Consumed(result, delivered_before=True)


def _finished_before(
    store: ControlStore, streams: Sequence[str], key: TransactionKey, table_id: str
) -> CommitResult | None:
    for stream in streams:
        for other in stream_transactions(store, stream):
            if other.superseded_by == key and other.result is not None and _writes(other, table_id):
                return other.result
    return None


def _writes(transaction: Transaction, table_id: str) -> bool:
    return any(statement.target.table_id == table_id for statement in transaction.plan.statements)
