"""A backfill of one object: its number is drawn, a job copies the table, and the store learns where the target is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidemark.control.store import ControlStore
from tidemark.model.jobs import JobSpec
from tidemark.model.replication import BackfillProgress, By
from tidemark.model.replication_jobs import BackfillReport
from tidemark.model.transactions import TransactionKey
from tidemark.transactions.limits import DEFAULT_LIMITS, JobPlaces, Limits, RunJob

__all__ = ["BackfillOutcome", "ReadProgress", "record_progress", "run_backfill"]

ReadProgress = Callable[[JobSpec], BackfillProgress | None]
"""What a job has left beside its result (`<result_uri>.progress`); None: nothing yet."""


@dataclass(frozen=True)
class BackfillOutcome:
    """What came of it. `reason`: why there was nothing to do; exactly one of the two is there."""

    report: BackfillReport | None = None
    reason: str | None = None


def run_backfill(
    store: ControlStore,
    object_uid: str,
    *,
    run: RunJob,
    places: JobPlaces,
    by: By,
    cancel: Callable[[], None],
    read_progress: ReadProgress,
    partitions: int = 4,
    key: TransactionKey | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> BackfillOutcome:
    """Backfill the object, if that was asked for (PENDING), failed, or was begun by this run.

    `cancel` ends the job when the backfill was stopped; `by.run` tells a retry from another run, and is needed.
    """
    raise NotImplementedError


def record_progress(store: ControlStore, object_uid: str, *, number: int, progress: BackfillProgress) -> bool:
    """Keep how far backfill `number` is; False: it is not the active one any more, and its job is to end."""
    raise NotImplementedError
