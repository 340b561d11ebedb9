"""A write-down of one object: its range is written ahead, a job applies it, and the store moves `applied`."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.control.store import ControlStore
from tidemark.model.replication import By
from tidemark.model.replication_jobs import WriteDownReport
from tidemark.model.transactions import TransactionKey
from tidemark.transactions.limits import DEFAULT_LIMITS, JobPlaces, Limits, RunJob

__all__ = ["WriteDownOutcome", "run_write_down"]


@dataclass(frozen=True)
class WriteDownOutcome:
    """What was applied, of all jobs together; None where no job was needed. `reason`: why the object cannot go on."""

    report: WriteDownReport | None = None
    reason: str | None = None


def run_write_down(
    store: ControlStore,
    object_uid: str,
    *,
    run: RunJob,
    places: JobPlaces,
    by: By,
    key: TransactionKey | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> WriteDownOutcome:
    """Apply to the object's target what was captured and is not there yet."""
    raise NotImplementedError
