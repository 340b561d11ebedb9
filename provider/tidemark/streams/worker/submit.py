"""Submit: compare-and-set first, then the job (PROTOCOL steps 8 and 9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import sqlalchemy as sa

from tidemark.delivery.model.transactions import Transaction
from tidemark.errors import InvalidArgument, SubmitRefused
from tidemark.failpoints import failpoint
from tidemark.model.jobs import JobSpec
from tidemark.model.statements import Evidence
from tidemark.streams.model.transaction_jobs import WRITE
from tidemark.streams.store import transactions
from tidemark.streams.store.transactions import StoredTransaction
from tidemark.streams.worker.following import follow_windows
from tidemark.streams.worker.job_orders import NewJob, order_job, same_window, write_to_the_end
from tidemark.streams.worker.lease import LeaseKept
from tidemark.streams.worker.left_drivers import take_up_drivers
from tidemark.streams.worker.runtime import Runtime

__all__ = ["submit"]


@dataclass(frozen=True)
class _Decision:
    """The decision of the compare-and-set: a job to run, or evidence that needs none."""

    transaction_id: str
    evidence: tuple[Evidence, ...]
    job: JobSpec | None


def submit(runtime: Runtime, transaction: Transaction, *, only: Sequence[int] | None = None) -> tuple[Evidence, ...]:
    """Run the statements (`only` those numbers; default: all) as one job; their evidence is kept and returned.

    A second run starts no job for what has evidence already. A job that it starts finds the marks of what was written
    and not reported. A driver in a cluster that an earlier attempt started is waited for first. So is one that this
    attempt has left to the triggerer, and its error is raised. The lease is renewed while the job runs. Raises
    SubmitRefused, with no job started, if the transaction is no longer the one given (V7). Raises RelocationRefused if
    a source was moved and cannot be followed (R90). Raises CommitRefused if the job's evidence speaks of something
    else, and every error that the job reports.
    """
    numbers = _numbers(transaction, only)
    if transaction.result is not None:
        return tuple(one for one in transaction.result.evidence if one.number in numbers)
    take_up_drivers(runtime, transaction)
    store, new = runtime.store, NewJob.draw(runtime)
    transaction = follow_windows(store, transaction, runtime.tables)
    decision = store.write(lambda connection: _decide(connection, transaction, numbers, new))
    if decision.job is None:
        return decision.evidence
    job = _sized(runtime, decision.job, transaction)
    failpoint("submit.stored")
    with LeaseKept(store, decision.transaction_id, transaction.superseded_by, runtime.limits):
        return write_to_the_end(store, decision.transaction_id, transaction.key, new.id, partial(runtime.run, job))


def _sized(runtime: Runtime, job: JobSpec, transaction: Transaction) -> JobSpec:
    """The job with the bytes that it reads, if they decide on its executors."""
    if runtime.sizing is None:
        return job
    return replace(job, planned_bytes=runtime.sizing.planned(transaction.windows, runtime.tables).planned_bytes)


def _numbers(transaction: Transaction, only: Sequence[int] | None) -> list[int]:
    known = [statement.number for statement in transaction.plan.statements]
    if only is None:
        return known
    if not set(only) <= set(known):
        raise InvalidArgument(argument="only", value=tuple(only), problem=f"the plan has the statements {known}")
    return sorted(set(only))


def _decide(connection: sa.Connection, transaction: Transaction, numbers: Sequence[int], new: NewJob) -> _Decision:
    """Step 8; what has evidence, and what has nothing to read, needs no job."""
    stored = _require_same(connection, transaction)
    if all(window.empty for window in transaction.windows) or stored.evidence.keys() >= set(numbers):
        return _Decision(stored.id, tuple(stored.evidence[n] for n in numbers if n in stored.evidence), None)
    statements = [s for s in transaction.plan.statements if s.number in numbers]
    return _Decision(stored.id, (), order_job(connection, stored, WRITE, statements, new))


def _require_same(connection: sa.Connection, transaction: Transaction) -> StoredTransaction:
    stored = transactions.current(connection, transaction.key)
    if stored is None:
        raise SubmitRefused(key=str(transaction.key), problem="it was released; begin it again")
    if not same_window(stored.transaction, transaction):
        problem = f"it is {stored.transaction.state.value} by now, with other windows, versions, plan or holder"
        raise SubmitRefused(key=str(transaction.key), problem=problem)
    return stored
