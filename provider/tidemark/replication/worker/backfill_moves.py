"""The moves of a backfill in the store: begun, completed, failed. `worker.backfill` says in which order and why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import sqlalchemy as sa

from tidemark import errors
from tidemark.control.store import ControlStore
from tidemark.errors import ObjectFailed, TidemarkError
from tidemark.model.codec import from_json, to_json
from tidemark.replication.model.jobs import BackfillObject, BackfillReport
from tidemark.replication.model.replication import Actor, BackfillProgress, ObjectState, Replication
from tidemark.replication.planning.lifecycle import ObjectAct, backfills, object_leads_to, why_no_backfill, why_not
from tidemark.replication.planning.positions import epoch_of, position_text
from tidemark.replication.planning.showing import rules_of
from tidemark.replication.store import object_writes, replicated_objects, replications
from tidemark.replication.store.object_writes import ObjectWrite, WriteKind, WriteState
from tidemark.replication.store.replicated_objects import StoredObject
from tidemark.streams.worker.limits import Limits

__all__ = [
    "BEFORE_THE_WRITE",
    "NOT_OURS",
    "BackfillOutcome",
    "Begun",
    "begin_backfill",
    "complete_backfill",
    "fail_backfill",
]

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
NOT_OURS = "it was stopped, begun again, or now belongs to another run"


@dataclass(frozen=True)
class BackfillOutcome:
    """The result of a backfill. `reason`: why there was nothing to do; `error`: why it failed, as one of many. Exactly
    one of the three is set.
    """

    report: BackfillReport | None = None
    reason: str | None = None
    error: TidemarkError | None = None


@dataclass(frozen=True)
class Begun:
    """`alone`: no earlier job of the same number may still write."""

    write: ObjectWrite
    request: BackfillObject
    alone: bool

    def wrote_nothing(self, failure: TidemarkError) -> bool:
        """Whether no copy of this number is in the target after the failure, nor ever will be."""
        return isinstance(failure, NO_COPY) or (self.alone and isinstance(failure, BEFORE_THE_WRITE))


def begin_backfill(
    connection: sa.Connection,
    store: ControlStore,
    object_uid: str,
    by: Actor,
    partitions: int,
    limits: Limits,
    *,
    deadline: datetime,
) -> Begun | BackfillOutcome:
    """The backfill to run; the outcome if there is none, or if this run's has answered already."""
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
    if again is None:  # the progress is that of an earlier one
        replicated_objects.set_progress(connection, object_uid, number=write.number, progress=None)
    active = replace(drawn, state=ObjectState.ACTIVE, problem=None)
    earlier = replicated_objects.left_in(connection, active.target) if active.snapshot is None else ()
    return Begun(write, _request(found.replication, replace(stored, object=active), partitions, earlier), alone)


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
        return f"run {write.run} is working on it; its lease ends at {write.lease_until.isoformat()}"
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
        rules=rules_of(replication.selection, replication.options, stored.held, by_name=replication.kind.folds_columns),
        epoch=epoch_of(replication.captured),
    )


def complete_backfill(
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


def fail_backfill(
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
