"""A backfill of one object: its number is drawn, a job copies the table, and the store learns where the target is.

The number is written ahead and stays with the backfill until it has answered. A retry may continue it, and so may
another run if the worker was silent for a lease. The copy is one commit of the target under that number, so of two jobs
one finds the other's copy. A worker that died after the commit loses nothing: the next job reads the mark, and answers
without copying. Only one error says that nothing was written: it comes before the write, and the number has no other
live job. Then the number is spent. After any other error the copy may exist.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument, JobError, from_record
from tidemark.model.jobs import JobSpec
from tidemark.model.statements import TransactionKey
from tidemark.replication.model.jobs import BACKFILL_OBJECT
from tidemark.replication.model.replication import Actor, BackfillProgress, ObjectState
from tidemark.replication.store import object_writes, replicated_objects
from tidemark.replication.store.object_writes import ObjectWrite
from tidemark.replication.worker.backfill_moves import (
    NOT_OURS,
    BackfillOutcome,
    begin_backfill,
    complete_backfill,
    fail_backfill,
)
from tidemark.streams.worker.limits import Limits
from tidemark.streams.worker.repeating import Repeating
from tidemark.streams.worker.runtime import Runtime

__all__ = ["BackfillOutcome", "ReadProgress", "run_backfill"]

log = logging.getLogger(__name__)

LOOKS = 5.0  # seconds between two looks at the progress of a job
ReadProgress = Callable[[JobSpec], BackfillProgress | None]
"""What a job has left beside its result (`<result_uri>.progress`); None: nothing yet."""


def run_backfill(
    runtime: Runtime,
    object_uid: str,
    *,
    by: Actor,
    cancel: Callable[[], None],
    read_progress: ReadProgress,
    partitions: int = 4,
    key: TransactionKey | None = None,
    looks: float = LOOKS,
) -> BackfillOutcome:
    """Backfill the object, if that was asked for (PENDING), failed, or is this run's; else the outcome says why not.

    `by.run` tells a retry of the same run from another run. The retry continues at once, the other run waits for the
    lease. A clear of a task whose backfill is complete answers what that had answered. `cancel` ends the job when the
    backfill was stopped or belongs to another worker; then the outcome is the reason. Raises ObjectNotFound,
    ReplicationNotFound, InvalidArgument without a run, JobError, and the errors of the job; the object is FAILED then.
    """
    if not by.run:
        raise InvalidArgument(argument="by.run", value=by.run, problem="a backfill belongs to a run")
    store, limits, deadline = runtime.store, runtime.limits, runtime.deadline()
    begun = store.write(
        lambda connection: begin_backfill(connection, store, object_uid, by, partitions, limits, deadline=deadline)
    )
    if isinstance(begun, BackfillOutcome):
        return begun
    spec = runtime.spec(BACKFILL_OBJECT, begun.request, key=key, deadline=deadline)
    kept = _Kept(store, begun.write, spec, by, cancel, read_progress, limits, looks)
    try:
        with kept:
            answer = runtime.run(spec)
    except JobError as error:
        if fail_backfill(store, begun.write, error, by, deadline=deadline, spent=False) and not kept.lost:
            raise
        return BackfillOutcome(reason=NOT_OURS)
    if answer.error is not None:
        failure = from_record(answer.error)
        spent = begun.wrote_nothing(failure)
        if fail_backfill(store, begun.write, failure, by, deadline=deadline, spent=spent) and not kept.lost:
            raise failure
        return BackfillOutcome(reason=NOT_OURS)
    report = BACKFILL_OBJECT.reported(answer)
    return store.write(
        lambda connection: complete_backfill(connection, store, begun.write, report, by, deadline=deadline)
    )


class _Kept(Repeating):
    """While a job runs: its progress is stored, its lease renewed, and the job ended when the backfill is stopped.

    `lost`: it was stopped, given up, or taken over by another run. A store that cannot be reached is tried again.
    """

    def __init__(
        self,
        store: ControlStore,
        write: ObjectWrite,
        spec: JobSpec,
        by: Actor,
        cancel: Callable[[], None],
        read_progress: ReadProgress,
        limits: Limits,
        looks: float,
    ) -> None:
        super().__init__(self._keep, seconds=looks, what="progress of the backfill")
        self.lost = False
        self._store = store
        self._write = write
        self._spec = spec
        self._by = by
        self._cancel = cancel
        self._read_progress = read_progress
        self._limits = limits

    def _keep(self) -> bool:
        if self._is_ours():
            return True
        log.warning("The backfill was stopped, or another run has it; its job is ended.")
        self.lost = True
        self._cancel()
        return False

    def _is_ours(self) -> bool:
        progress, until = self._read_progress(self._spec), self._store.clock() + self._limits.lease

        def keep(connection: sa.Connection) -> bool:
            one = replicated_objects.by_uid(connection, self._write.object_uid).object
            ours = object_writes.renew(connection, self._write, run=self._by.run, until=until)
            if progress is not None and ours and progress != one.progress:
                replicated_objects.set_progress(connection, one.uid, number=self._write.number, progress=progress)
            return ours and one.state is ObjectState.ACTIVE

        return self._store.write(keep)
