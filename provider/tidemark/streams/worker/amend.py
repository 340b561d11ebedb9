"""Another plan for what is not written yet of a window that is written in part (V2, PROTOCOL step 18)."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from tidemark.model.statements import PlannedWrite, TransactionKey
from tidemark.streams.store import streams, transactions
from tidemark.streams.store.transactions import StoredTransaction
from tidemark.streams.worker.late_jobs import refuse_late_jobs
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.targets import TargetHead, look_at_targets, plan_statements
from tidemark.streams.worker.unwritten import look_before, remains_of, require_unchanged

__all__ = ["amend"]


def amend(
    runtime: Runtime, key: TransactionKey, writes: Sequence[PlannedWrite], *, holder: TransactionKey | None
) -> bool:
    """Put `writes` in place of the stored plan, if every written statement has the same number in both. Whether it was
    done.

    The plan is replaced only if the targets' logs show for each statement whether it is written, and every job has
    ended. Changed statements get numbers that were never used (I5, I6). A second run finds the plan as it is to be, and
    does the same once more. Raises SubmitRefused if the transaction changed in between, JobsMayBeAlive (step 6), and
    the errors of `look_at_targets`.
    """
    store, tables = runtime.store, runtime.tables
    before = store.read(lambda connection: look_before(connection, key))
    if before is None:
        return False
    stored = before.stored
    remains = remains_of(before, holder, store.store_id, tables)
    if remains is None or remains.holder or remains.job_until or remains.unclear:
        return False
    if not all(_stays(stored, writes, number) for number in remains.numbers):
        return False
    targets = look_at_targets(store, writes, tables, runtime.limits)

    def move(connection: sa.Connection) -> None:
        require_unchanged(connection, before)
        refuse_late_jobs(connection, targets, store)
        _replace(connection, stored, targets, kept=remains.numbers)

    store.write(move)
    return True


def _stays(stored: StoredTransaction, writes: Sequence[PlannedWrite], number: int) -> bool:
    return number <= len(writes) and stored.transaction.plan.statements[number - 1].digest == writes[number - 1].digest


def _replace(
    connection: sa.Connection, stored: StoredTransaction, targets: Sequence[TargetHead], *, kept: Sequence[int]
) -> None:
    old = stored.transaction.plan.statements
    serial = streams.draw_serial(connection, stored.lead)
    lead = old[0].app_id.removeprefix("tidemark/").rpartition("/")[0]
    planned = plan_statements(lead, serial, targets, first=1)
    transactions.remove_statements(connection, stored.id, [s.number for s in old if s.number not in kept])
    transactions.add_statements(connection, stored.id, [s for s in planned if s.number not in kept])
