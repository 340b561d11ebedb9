"""Drivers in a cluster whose worker is gone: the next attempt waits for them, and starts no other (PROTOCOL step 8)."""

from __future__ import annotations

import logging

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.delivery.model.transactions import Transaction, TransactionState
from tidemark.errors import DriverEndUnproven, JobCancelled, JobError
from tidemark.model.jobs import JobResult
from tidemark.model.statements import TransactionKey
from tidemark.streams.model.transaction_jobs import WRITE
from tidemark.streams.store import jobs, transactions
from tidemark.streams.store.jobs import UnseenJob
from tidemark.streams.worker.clusters import Cluster, LeftDriver, owner_of
from tidemark.streams.worker.job_orders import write_to_the_end
from tidemark.streams.worker.lease import LeaseKept
from tidemark.streams.worker.runtime import Runtime

__all__ = ["end_left", "give_up_waiting", "keep_application", "take_up_drivers", "take_up_jobs"]

log = logging.getLogger(__name__)


def keep_application(store: ControlStore, job_id: str, application: str) -> None:
    """Stores the cluster's id of the job's application, before anything waits for it. Jobs without a transaction have
    no row; their applications are found by their tags. A second call writes the same.
    """
    store.write(lambda connection: jobs.keep_application(connection, job_id, application))


def take_up_drivers(runtime: Runtime, transaction: Transaction) -> None:
    """Wait for each driver of the transaction that nobody saw end. Its evidence and its end are stored.

    A driver of another attempt that failed, or never began, leaves the work to a new job. So does one that YARN gave up
    without proof of its end. The marker asks it to stop, and marks in the targets keep it from writing twice. The error
    of the attempt's own driver is raised. Raises ClusterError if the cluster does not answer, JobCancelled and
    DriverGoesOn. A second run continues with those that are left.
    """
    cluster = runtime.cluster
    if cluster is None:
        return
    for transaction_id, job in _left(runtime, cluster, transaction):
        log.info("Job %s of %s was started before; its driver is looked for in the cluster.", job.id, transaction.key)
        with LeaseKept(runtime.store, transaction_id, transaction.superseded_by, runtime.limits):
            _take_up(runtime, cluster, transaction_id, transaction.key, job)


def take_up_jobs(runtime: Runtime, key: TransactionKey | None) -> None:
    """Wait for jobs without a transaction that an earlier attempt of the task has left in the cluster. Each such job
    does so by itself before it starts; this is for steps that such a job would hinder before that. Raises ClusterError.
    """
    if runtime.cluster is not None and key is not None:
        owner = owner_of(runtime.store.store_id, key)
        runtime.cluster.take_up(owner, about=str(key), deadline=runtime.deadline())


def end_left(runtime: Runtime, key: TransactionKey) -> None:
    """End the drivers in the cluster of the task with `key`: its wait in the triggerer has failed. The leases of its
    transactions are given up. A second run is harmless.
    """
    store, cluster = runtime.store, runtime.cluster
    if cluster is None:
        return
    transactions_of = store.read(lambda connection: transactions.held(connection, key))
    left = store.read(lambda connection: [job for one in transactions_of for job in jobs.unseen(connection, one.id)])
    for job in left:
        if job.host == cluster.name and cluster.end(job.id):
            _end(store, job, "its task waits no more")
        give_up_waiting(store, job.id)
    cluster.end_registered(owner_of(store.store_id, key))


def give_up_waiting(store: ControlStore, job_id: str) -> None:
    """Another run may finish the job's transaction at once, since no task waits for the job in the triggerer.

    The lease of somebody who came in between is shorter than the job, and stays. A second run changes nothing.
    """

    def move(connection: sa.Connection) -> None:
        job = jobs.find(connection, job_id)
        if job is None:
            return
        left = transactions.by_id(connection, job.transaction_id).transaction
        if left.lease_until > job.deadline:
            holder, now = left.superseded_by, store.clock()
            transactions.renew_lease(connection, job.transaction_id, holder=holder, until=now)

    store.write(move)


def _take_up(runtime: Runtime, cluster: Cluster, transaction_id: str, key: TransactionKey, job: UnseenJob) -> None:
    own = job.id == runtime.awaited
    try:
        result = cluster.wait_for(LeftDriver(job.id, job.application, str(key), job.deadline, own))
    except DriverEndUnproven as unproven:
        if own:
            raise
        log.warning("%s", unproven)
        return
    except JobError as error:
        _end(runtime.store, job, type(error).__name__)
        if own or isinstance(error, JobCancelled):
            raise
        log.warning("A driver that was left has ended: %s", error)
        return
    if result is not None and result.error is None and not _is_readable(result):
        log.warning("The report of job %s is of another release, so the marks in the targets are looked at.", job.id)
        result = None
    if own and result is not None:
        write_to_the_end(runtime.store, transaction_id, key, job.id, lambda: result)
    else:
        _keep(runtime.store, transaction_id, job, result)


def _is_readable(result: JobResult) -> bool:
    try:
        WRITE.reported(result)
    except (ValueError, TypeError, AttributeError):
        return False
    return True


def _left(runtime: Runtime, cluster: Cluster, transaction: Transaction) -> list[tuple[str, UnseenJob]]:
    def look(connection: sa.Connection) -> list[tuple[str, UnseenJob]]:
        stored = transactions.current(connection, transaction.key)
        if stored is None or stored.transaction.state is not TransactionState.OPEN:
            return []
        return [(stored.id, job) for job in jobs.unseen(connection, stored.id) if job.host == cluster.name]

    return runtime.store.read(look)


def _keep(store: ControlStore, transaction_id: str, job: UnseenJob, result: JobResult | None) -> None:
    """Evidence and end in one transaction. Evidence of another plan is not kept: the next job looks at the marks."""
    if result is None or result.error is not None:
        outcome = "no answer" if result is None or result.error is None else result.error.error
        log.info("Job %s left nothing: %s.", job.id, outcome)
        _end(store, job, outcome)
        return
    evidence = WRITE.reported(result).evidence

    def keep(connection: sa.Connection) -> None:
        for one in evidence:
            transactions.record_evidence(connection, transaction_id, one)
        jobs.end(connection, job.id, at=store.clock(), outcome="done")

    store.write(keep)


def _end(store: ControlStore, job: UnseenJob, outcome: str) -> None:
    now = store.clock()
    store.write(lambda connection: jobs.end(connection, job.id, at=now, outcome=outcome))
