"""Replan: windows are let go once every target has been shut against late writers (PROTOCOL step 18)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.delivery.model.transactions import Transaction, TransactionState
from tidemark.errors import CommitRefused, SubmitRefused, TransactionNotFound
from tidemark.model.jobs import JobSpec
from tidemark.model.statements import TransactionKey
from tidemark.streams.model.transaction_jobs import FENCE, FenceReport
from tidemark.streams.planning.replay_steps import START_AGAIN
from tidemark.streams.store import jobs, transactions
from tidemark.streams.store.transactions import StoredTransaction
from tidemark.streams.worker.job_orders import NewJob, order_job, run_to_the_end, same_window
from tidemark.streams.worker.lease import LeaseKept
from tidemark.streams.worker.rollback import release
from tidemark.streams.worker.runtime import Runtime, report_of
from tidemark.streams.worker.versions import draw_versions, require_jobs_ended

__all__ = ["replan"]


@dataclass(frozen=True)
class _FenceOrder:
    """A fence job, with what must still hold when it has run; no job where nothing was ever submitted."""

    stored: StoredTransaction
    jobs_so_far: int
    job: JobSpec | None


def replan(runtime: Runtime, key: TransactionKey) -> Transaction:
    """Free the windows, if no target holds any of them: then another plan and other bounds may follow (step 18).

    1. Nothing submitted: released. 2. A job may be alive: JobsMayBeAlive, come again later. 3. A fence job shuts every
    statement's Delta transaction out of its target. 4. All shut: released. 5. A target was replaced or rewound:
    SubmitRefused; redo, then replan. 6. Some were written: the transaction stays open, and the stored plan must be
    finished. The written ones have their evidence, the others get new versions.

    The answer's state says which. A second run does the rest, or nothing. Raises SubmitRefused if the transaction
    changed in between, and the fence job's error.
    """
    store, new = runtime.store, NewJob.draw(runtime)
    ordered = store.write(lambda connection: _order(connection, store, key, new))
    if ordered.job is None:
        return ordered.stored.transaction
    with LeaseKept(store, ordered.stored.id, ordered.stored.transaction.superseded_by, runtime.limits):
        result = run_to_the_end(store, new.id, partial(runtime.run, ordered.job))
    report = report_of(FENCE, result)
    return store.write(lambda connection: _conclude(connection, store, ordered, report))


def _order(connection: sa.Connection, store: ControlStore, key: TransactionKey, new: NewJob) -> _FenceOrder:
    stored = transactions.current(connection, key)
    if stored is None:
        raise TransactionNotFound(key=str(key))
    if stored.transaction.state is not TransactionState.OPEN:
        return _FenceOrder(stored, 0, None)
    if not stored.transaction.submitted:
        return _FenceOrder(release(connection, store, stored), 0, None)
    require_jobs_ended(connection, stored, store.clock())
    spec = order_job(connection, stored, FENCE, stored.transaction.plan.statements, new)
    return _FenceOrder(stored, jobs.count_writes(connection, stored.id), spec)


def _conclude(connection: sa.Connection, store: ControlStore, ordered: _FenceOrder, report: FenceReport) -> Transaction:
    """The fences count only if nothing was submitted or changed while they were set (I11)."""
    stored = transactions.by_id(connection, ordered.stored.id)
    key = str(stored.transaction.key)
    unchanged = same_window(stored.transaction, ordered.stored.transaction)
    if not unchanged or jobs.count_writes(connection, stored.id) != ordered.jobs_so_far:
        raise SubmitRefused(key=key, problem="it changed while it was being fenced")
    written = {evidence.number for evidence in report.evidence}
    _refuse_lost(stored, set(report.lost) - written)
    if not written:
        return release(connection, store, stored).transaction
    for evidence in report.evidence:
        if not transactions.record_evidence(connection, stored.id, evidence):
            raise CommitRefused(key=key, problem=f"the fence job's evidence for statement {evidence.number} is foreign")
    fenced = [s.number for s in stored.transaction.plan.statements if s.number not in written]
    draw_versions(connection, stored, fenced)
    return transactions.by_id(connection, stored.id).transaction


def _refuse_lost(stored: StoredTransaction, lost: Collection[int]) -> None:
    names = sorted({s.target.name for s in stored.transaction.plan.statements if s.number in lost})
    if names:
        replayed = any(window.replayed for window in stored.transaction.windows)
        step = START_AGAIN if replayed else "redo first"
        problem = f"{', '.join(names)} was replaced or rewound, so it could not be fenced; {step}"
        raise SubmitRefused(key=str(stored.transaction.key), problem=problem)
