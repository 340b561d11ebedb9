"""Jobs that may still write into a table that was stored where a target is stored now (PROTOCOL step 6, V11)."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.errors import JobsMayBeAlive
from tidemark.streams.store import jobs, transactions
from tidemark.streams.worker.targets import TargetHead

__all__ = ["refuse_late_jobs"]


def refuse_late_jobs(connection: sa.Connection, targets: Sequence[TargetHead], store: ControlStore) -> None:
    """No plan for a table while a job that was given its predecessor may live (step 6). Raises JobsMayBeAlive."""
    now = store.clock()
    for target in targets:
        job = jobs.given_another_table(
            connection, target_path=target.table.path, table_id=target.table.table_id, now=now
        )
        if job is not None:
            owner = transactions.by_id(connection, job.transaction_id).transaction.key
            raise JobsMayBeAlive(key=str(owner), until=job.deadline)
