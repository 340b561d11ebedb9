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
from dataclasses import dataclass, replace
from datetime import datetime

import sqlalchemy as sa

from tidemark import errors
from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument, JobError, ObjectFailed, TidemarkError, from_record
from tidemark.model.codec import from_json, to_json
from tidemark.model.jobs import JobSpec
from tidemark.model.statements import TransactionKey
from tidemark.replication.model.jobs import BACKFILL_OBJECT, BackfillObject, BackfillReport
from tidemark.replication.model.replication import Actor, BackfillProgress, ObjectState, Replication
from tidemark.replication.planning.lifecycle import ObjectAct, backfills, object_leads_to, why_no_backfill, why_not
from tidemark.replication.planning.positions import epoch_of, position_text
from tidemark.replication.planning.showing import rules_of
from tidemark.replication.store import object_writes, replicated_objects, replications
from tidemark.replication.store.object_writes import ObjectWrite, WriteKind, WriteState
from tidemark.replication.store.replicated_objects import StoredObject
from tidemark.streams.worker.limits import Limits
from tidemark.streams.worker.repeating import Repeating
from tidemark.streams.worker.runtime import Runtime

__all__ = ["BackfillOutcome", "ReadProgress", "run_backfill"]

log = logging.getLogger(__name__)

LOOKS = 5.0  # seconds between two looks at the progress of a job
BEFORE_THE_WRITE = (
    errors.SourceUnreachable,
    errors.SourceRefused,
    errors.SourceDriverNotInstalled,
    errors.SourceIsAnother,
    errors.SlotBlocked,
    errors.BackfillInterrupted,
    errors.ObjectNotReplicable,
    errors.ObjectFailed,
    errors.ReplicationRefused,
    errors.ValueDoesNotFit,
    errors.ToastedKey,
    errors.NotYetSupported,
    errors.InvalidArgument,
)
"""Errors of a job that come behind its look for a copy of its number, and before its write."""
NO_COPY = (
    errors.TargetMovedOn,
    errors.TargetNotFound,
    errors.TargetNotDelta,
    errors.TargetChanged,
    errors.TargetRewound,
    errors.SerialReused,
)
"""Errors after which a copy of this number is not in the target, whoever wrote it, and never can be."""
NOT_OURS = "it was stopped, begun again, or is another run's by now"
ReadProgress = Callable[[JobSpec], BackfillProgress | None]
"""What a job has left beside its result (`<result_uri>.progress`); None: nothing yet."""


@dataclass(frozen=True)
class BackfillOutcome:
    """The result of a backfill. `reason`: why there was nothing to do; exactly one of the two is set."""

    report: BackfillReport | None = None
    reason: str | None = None


@dataclass(frozen=True)
class _Begun:
    """`alone`: no earlier job of the same number may still write."""

    write: ObjectWrite
    request: BackfillObject
    alone: bool


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
        lambda connection: _begin(connection, store, object_uid, by, partitions, limits, deadline=deadline)
    )
    if isinstance(begun, BackfillOutcome):
        return begun
    spec = runtime.spec(BACKFILL_OBJECT, begun.request, key=key, deadline=deadline)
    kept = _Kept(store, begun.write, spec, by, cancel, read_progress, limits, looks)
    try:
        with kept:
            answer = runtime.run(spec)
    except JobError as error:
        if _failed(store, begun.write, error, by, deadline=deadline, spent=False) and not kept.lost:
            raise
        return BackfillOutcome(reason=NOT_OURS)
    if answer.error is not None:
        failure = from_record(answer.error)
        nothing = isinstance(failure, NO_COPY) or (begun.alone and isinstance(failure, BEFORE_THE_WRITE))
        if _failed(store, begun.write, failure, by, deadline=deadline, spent=nothing) and not kept.lost:
            raise failure
        return BackfillOutcome(reason=NOT_OURS)
    report = BACKFILL_OBJECT.reported(answer)
    return store.write(lambda connection: _complete(connection, store, begun.write, report, by, deadline=deadline))


def _begin(
    connection: sa.Connection,
    store: ControlStore,
    object_uid: str,
    by: Actor,
    partitions: int,
    limits: Limits,
    *,
    deadline: datetime,
) -> _Begun | BackfillOutcome:
    stored = replicated_objects.by_uid(connection, object_uid)
    found = replications.by_uid(connection, stored.object.replication_uid)
    write = object_writes.open_one(connection, object_uid)
    now = store.clock()
    refused = _why_not(found.replication, stored, write, by, dropping=found.dropping, now=now)
    if refused is not None:
        answered = _answered(connection, stored, by)
        return answered if answered is not None else BackfillOutcome(reason=refused)
    again = write if write is not None and write.kind is WriteKind.BACKFILL else None
    alone = again is None or again.ended_at is not None or again.deadline <= now
    if again is not None:
        write = again
    else:
        if write is not None:
            object_writes.close(connection, write, WriteState.GIVEN_UP, at=now)
        number = replicated_objects.draw_number(connection, stored.object)
        write = ObjectWrite(
            object_uid, number, WriteKind.BACKFILL, now, now + limits.lease, deadline, by.run, as_of=now
        )
        object_writes.insert(connection, write)
    object_writes.begin_job(connection, write, run=by.run, lease_until=now + limits.lease, deadline=deadline)
    drawn = replace(stored.object, writes=write.number)
    replicated_objects.transition(connection, drawn, ObjectAct.BEGIN.value, ObjectState.ACTIVE, at=now, by=by)
    if again is None:  # what is there is of an earlier one
        replicated_objects.set_progress(connection, object_uid, number=write.number, progress=None)
    active = replace(drawn, state=ObjectState.ACTIVE, problem=None)
    earlier = replicated_objects.left_in(connection, active.target) if active.snapshot is None else ()
    return _Begun(write, _request(found.replication, replace(stored, object=active), partitions, earlier), alone)


def _why_not(
    replication: Replication,
    stored: StoredObject,
    write: ObjectWrite | None,
    by: Actor,
    *,
    dropping: bool,
    now: datetime,
) -> str | None:
    """Why no backfill begins now."""
    one = stored.object
    if dropping or not backfills(replication.state):
        return f"nothing is backfilled: {'it is being dropped' if dropping else why_not(replication)}"
    if (problem := why_no_backfill(one)) is not None:
        return problem
    if object_leads_to(one.state, ObjectAct.BEGIN) is None:
        return f"no backfill is requested: it is {one.state.value}"
    if write is not None and write.kind is WriteKind.BACKFILL and _is_held(write, by, now):
        return f"run {write.run} is at it; its lease ends at {write.lease_until.isoformat()}"
    return None


def _is_held(write: ObjectWrite, by: Actor, now: datetime) -> bool:
    return write.run != by.run and write.ended_at is None and write.lease_until > now


def _answered(connection: sa.Connection, stored: StoredObject, by: Actor) -> BackfillOutcome | None:
    """The answer that this run's backfill has given already, if the object is still at that copy."""
    newest = object_writes.newest(connection, stored.object.uid, WriteKind.BACKFILL)
    if stored.object.state is not ObjectState.COMPLETED or newest is None or newest.run != by.run:
        return None
    if newest.state is not WriteState.DONE or newest.report is None:
        return None
    return BackfillOutcome(replace(from_json(BackfillReport, newest.report), found=True))


def _request(
    replication: Replication, stored: StoredObject, partitions: int, earlier: tuple[str, ...]
) -> BackfillObject:
    """A target that is read never goes back: all that any apply of it may have applied was captured by now.
    `earlier`: the first copy takes over a target that these objects of dropped replications left.
    """
    return BackfillObject(
        replication_uid=replication.uid,
        stream=replication.name,
        object=stored.object,
        kind=replication.kind,
        number=stored.object.writes,
        event_log=replication.event_log,
        system_id=replication.system_id or "",
        invalid_values=replication.options.invalid_values,
        expected_rows=stored.expected_rows,
        partitions=partitions,
        batches=replication.batches,
        catch_up=None if stored.object.applied is None else replication.captured,
        excluded=stored.excluded,
        numeric_as=replication.options.numeric_as,
        earlier=earlier,
        gives_way_after=replication.options.gives_way_after,
        fetch_rows=replication.options.fetch_rows,
        rules=rules_of(replication.selection, replication.options, stored.held),
        epoch=epoch_of(replication.captured),
    )


def _complete(
    connection: sa.Connection,
    store: ControlStore,
    write: ObjectWrite,
    report: BackfillReport,
    by: Actor,
    *,
    deadline: datetime,
) -> BackfillOutcome:
    """The target has the copy. An object has the copy even if it was stopped or requested again while the copy ran. A
    backfill that was given up counts for nothing. Raises ObjectFailed for an answer from before what the target had.
    """
    now = store.clock()
    object_writes.end_job(connection, write, deadline=deadline, at=now)
    if not object_writes.close(connection, write, WriteState.DONE, at=now, report=to_json(report)):
        known = object_writes.lookup(connection, write.object_uid, write.number)
        if known is not None and known.report is not None:
            return BackfillOutcome(replace(from_json(BackfillReport, known.report), found=True))
        return BackfillOutcome(reason=NOT_OURS)
    stored = replicated_objects.by_uid(connection, write.object_uid)
    one, entry = stored.object, None if stored.seen is None else stored.seen.entry
    placed = replicated_objects.place(
        connection,
        one,
        object_leads_to(one.state, ObjectAct.COMPLETE) or one.state,
        snapshot=report.snapshot,
        applied=report.applied,
        shows=write.as_of,
        schema=report.schema,
        target=report.target,
        progress=BackfillProgress(report.rows, report.rows, now),
        at=now,
        by=by,
        seen=None if report.seen is None else replace(report.seen, entry=entry),
    )
    if not placed:
        raise ObjectFailed(
            object=one.name.text,
            problem=f"its backfill is exact at {position_text(report.snapshot)}, which is before what its target had",
            position=position_text(one.applied) if one.applied is not None else "its first event",
            remedy="If the source was restored from a backup, recover the replication.",
        )
    return BackfillOutcome(report)


def _failed(
    store: ControlStore, write: ObjectWrite, error: TidemarkError, by: Actor, *, deadline: datetime, spent: bool
) -> bool:
    """Keep the error; True if the failure is this backfill's, and not one that nobody waits for any more.

    `spent`: nothing was written under its number, nor will be; else the number stays open, since the copy may exist.
    """

    def fail(connection: sa.Connection) -> bool:
        now = store.clock()
        newest = object_writes.end_job(connection, write, deadline=deadline, at=now)
        known = object_writes.lookup(connection, write.object_uid, write.number)
        if not newest or known is None or known.state is not WriteState.OPEN:
            return False
        if spent:
            object_writes.close(connection, write, WriteState.FAILED, at=now)
        one = replicated_objects.by_uid(connection, write.object_uid).object
        to = object_leads_to(one.state, ObjectAct.FAIL) or one.state
        problem, reason = store.hide(str(error)), type(error).__name__
        replicated_objects.transition(
            connection, one, ObjectAct.FAIL.value, to, at=now, by=by, problem=problem, reason=reason
        )
        return True

    return store.write(fail)


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
