"""Jobs whose worker was killed, so that nobody saw them end: those of this host are ended (PROTOCOL step 18)."""

from __future__ import annotations

import logging

from tidemark.delivery.model.transactions import TransactionState
from tidemark.model.statements import TransactionKey
from tidemark.streams.store import jobs, transactions
from tidemark.streams.store.jobs import UnseenJob
from tidemark.streams.worker.runtime import Runtime

__all__ = ["end_unseen"]

log = logging.getLogger(__name__)


def end_unseen(runtime: Runtime, key: TransactionKey) -> None:
    """End those jobs of the key's open transaction that were to be started on this host and have no worker. Their end
    is stored.

    A driver that lives on stops before its next write, or is found to have written. Its host alone can tell. All other
    jobs stay as they are: alive until their deadlines. A second run finds the rest, or nothing.
    """
    host = runtime.host.name
    for job in _unseen(runtime, key) if host is not None else ():
        if job.host == host and runtime.host.end(job.id):
            log.info("Job %s of %s has ended: its worker is gone, and no process of it is left.", job.id, key)
            _store_end(runtime, job)


def _unseen(runtime: Runtime, key: TransactionKey) -> tuple[UnseenJob, ...]:
    with_key = runtime.store.read(lambda connection: transactions.current(connection, key))
    if with_key is None or with_key.transaction.state is not TransactionState.OPEN:
        return ()
    return runtime.store.read(lambda connection: jobs.unseen(connection, with_key.id))


def _store_end(runtime: Runtime, job: UnseenJob) -> None:
    now = runtime.store.clock()
    runtime.store.write(lambda connection: jobs.end(connection, job.id, at=now, outcome="its worker was killed"))
