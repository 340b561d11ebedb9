"""Job orders: written ahead, run, and its end kept, so that "surely ended" can be decided (PROTOCOL steps 8, 9, 18)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.delivery.model.transactions import Transaction, TransactionState
from tidemark.errors import CommitRefused, Fenced, JobError, StoreError, TidemarkError, from_record
from tidemark.model.jobs import Job, JobResult, JobSpec
from tidemark.model.statements import Evidence, Statement, TransactionKey
from tidemark.model.streams import StreamWindow, TableRef
from tidemark.streams.model.transaction_jobs import WRITE, StatementsRequest
from tidemark.streams.store import jobs, transactions
from tidemark.streams.store.transactions import StoredTransaction
from tidemark.streams.worker.catalog import forget_moved
from tidemark.streams.worker.older_store import keep_ordered
from tidemark.streams.worker.runtime import Runtime

__all__ = ["NewJob", "order_job", "run_to_the_end", "same_window", "write_to_the_end"]


@dataclass(frozen=True)
class NewJob:
    """Identity of a job that is about to be ordered; drawn outside the store's transaction."""

    id: str
    store_id: str
    runtime: Runtime

    @classmethod
    def draw(cls, runtime: Runtime) -> NewJob:
        """A job id that was never used before."""
        return cls(runtime.store.new_id(), runtime.store.store_id, runtime)


def same_window(stored: Transaction, given: Transaction) -> bool:
    """Whether a copy still speaks of the transaction as it stands: holder, windows, plan, versions, all by value. A
    table that was moved in between is the same: jobs read it where the store has it.
    """
    return (
        stored.state is TransactionState.OPEN
        and stored.superseded_by == given.superseded_by
        and [_of_table(one) for one in stored.windows] == [_of_table(one) for one in given.windows]
        and stored.plan == given.plan
    )


def _of_table(window: StreamWindow) -> StreamWindow:
    """The window without the place of its table."""
    return replace(window, source=TableRef("", "", window.source.table_id))


def order_job(
    connection: sa.Connection,
    stored: StoredTransaction,
    job: Job[StatementsRequest, Any],
    statements: Sequence[Statement],
    new: NewJob,
) -> JobSpec:
    """Keep the job and its deadline before it exists, and say what it is to do; the lease is renewed."""
    now, limits = new.runtime.store.clock(), new.runtime.limits
    deadline = now + limits.job_deadline
    host = new.runtime.host.name
    jobs.insert(connection, new.id, stored.id, job.name, statements, at=now, deadline=deadline, host=host)
    keep_ordered(connection, statements)
    if job is WRITE:
        latest = max(deadline, stored.transaction.job_deadline or deadline)
        transactions.mark_submitted(connection, stored.id, deadline=latest, lease=now + limits.lease)
    windows = stored.transaction.windows
    return new.runtime.paths.spec(
        job,
        new.id,
        StatementsRequest(windows, tuple(statements)),
        store_id=new.store_id,
        deadline=deadline,
        key=stored.transaction.key,
        streams=tuple(window.stream_name for window in windows),
    )


def write_to_the_end(
    store: ControlStore, transaction_id: str, key: TransactionKey, job_id: str, run: Callable[[], JobResult]
) -> tuple[Evidence, ...]:
    """As `run_to_the_end` for a writing job; its evidence is kept and returned.

    Raises the job's error, and keeps what it says of the plan. Raises CommitRefused if the evidence is of something
    else.
    """

    def keep(connection: sa.Connection, done: JobResult) -> None:
        for one in WRITE.reported(done).evidence:
            if not transactions.record_evidence(connection, transaction_id, one):
                problem = (
                    f"the job's evidence for statement {one.number} is not of the stored digest, table and version"
                )
                raise CommitRefused(key=str(key), problem=problem)

    result = run_to_the_end(store, job_id, run, keep)
    if result.error is not None:
        error = from_record(result.error)
        if isinstance(error, Fenced):
            store.write(lambda c: transactions.mark_fenced(c, transaction_id, error.facts["number"]))
        forget_moved(store, error)
        raise error
    return WRITE.reported(result).evidence


def run_to_the_end(
    store: ControlStore,
    job_id: str,
    run: Callable[[], JobResult],
    keep: Callable[[sa.Connection, JobResult], None] = lambda connection, result: None,
) -> JobResult:
    """Run the job and keep that it ended, where that is sure; otherwise it counts as alive until its deadline. `keep`
    stores the answer of a job that went well, in the same transaction. If it raises, the end is stored all the same.
    """
    try:
        result = run()
    except JobError as error:
        _end(store, job_id, type(error).__name__)
        raise
    if result.error is not None:
        _end(store, job_id, result.error.error)
        return result
    now = store.clock()

    def end(connection: sa.Connection) -> None:
        keep(connection, result)
        jobs.end(connection, job_id, at=now, outcome="done")

    try:
        store.write(end)
    except StoreError:
        raise
    except TidemarkError:
        _end(store, job_id, "done")
        raise
    return result


def _end(store: ControlStore, job_id: str, outcome: str) -> None:
    now = store.clock()
    store.write(lambda connection: jobs.end(connection, job_id, at=now, outcome=outcome))
