"""An apply of an object: its range is written ahead, a job applies it, and the store moves `applied`.

Number and range stay with the apply until it has answered, even if a retry or another run continues it. Each piece is
one commit of the target under that number. So an attempt finds every piece that an earlier or a concurrent attempt has
written. A worker that died after the job's last commit loses nothing. The next worker is given the same range, and the
job answers with the pieces that exist. An error leaves the apply open: the pieces written before it stay. The next run
continues behind them, unless a backfill came. If a backfill interrupted an apply and ended before it wrote, that apply
is taken up again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.errors import BackfillNeeded, JobError, JobFailed, ObjectFailed, StoreError, TidemarkError, from_record
from tidemark.model.codec import from_json, to_json
from tidemark.model.jobs import JobSpec
from tidemark.model.statements import TransactionKey
from tidemark.replication.model.jobs import APPLY_EVENTS, AppliedObject, ApplyEvents, ApplyObjects, ApplyReport
from tidemark.replication.model.replication import Actor, LogPosition, ReplicatedObject, Replication
from tidemark.replication.planning.lifecycle import applies, has_all, why_not, why_not_applied
from tidemark.replication.planning.positions import position_text
from tidemark.replication.store import object_writes, replicated_objects, replications
from tidemark.replication.store.object_writes import ObjectWrite, WriteKind, WriteState
from tidemark.replication.store.replication_errors import keep_of
from tidemark.replication.worker.quiet import move_quiet
from tidemark.streams.worker.limits import Limits
from tidemark.streams.worker.runtime import Runtime, report_of

__all__ = ["ApplyOutcome", "apply_objects"]


@dataclass(frozen=True)
class ApplyOutcome:
    """The events that were applied, of all jobs together; None if no job was needed. `reason`: why the object cannot
    continue. `error`: why its last job failed; the object keeps it, too.
    """

    report: ApplyReport | None = None
    reason: str | None = None
    error: TidemarkError | None = None


@dataclass(frozen=True)
class _Begun:
    write: ObjectWrite
    request: ApplyEvents


def apply_objects(
    runtime: Runtime, object_uids: Sequence[str], *, by: Actor, key: TransactionKey | None = None
) -> Mapping[str, ApplyOutcome]:
    """Apply the captured events that the objects' targets do not have yet, all objects in one job.

    A range that an attempt before left open comes first, with its own bounds; then what was captured since. Objects
    without a captured event move on together, without a job. An object that cannot continue has a reason: its
    backfill is under way, has not answered, or is needed. It may also be unselected or unsupported. An object that
    fails stops no other. A second run finds nothing left. Raises ObjectNotFound, ReplicationNotFound, and JobError if
    the job as a whole failed; then each of its objects keeps the problem.
    """
    reports: dict[str, list[ApplyReport]] = {uid: [] for uid in object_uids}
    ended: dict[str, ApplyOutcome] = {}
    while left := [uid for uid in reports if uid not in ended]:
        deadline, begun = runtime.deadline(), list[_Begun]()
        quiet = move_quiet(runtime.store, left)
        ended |= {uid: ApplyOutcome(_together(reports[uid])) for uid in left if uid in quiet}
        for uid in left:
            if uid in quiet:
                continue
            found = runtime.store.write(partial(_begin, runtime=runtime, object_uid=uid, by=by, deadline=deadline))
            if isinstance(found, _Begun):
                begun.append(found)
            else:
                ended[uid] = ApplyOutcome(_together(reports[uid]), found)
        if begun:
            ended |= _ran(runtime, begun, reports, by, key=key, deadline=deadline)
    return {uid: ended[uid] for uid in reports}


def _ran(
    runtime: Runtime,
    begun: Sequence[_Begun],
    reports: Mapping[str, list[ApplyReport]],
    by: Actor,
    *,
    key: TransactionKey | None,
    deadline: datetime,
) -> dict[str, ApplyOutcome]:
    """One job; `reports` get what it has applied. Returns the objects that go no further."""
    store, ended = runtime.store, dict[str, ApplyOutcome]()
    spec = runtime.spec(APPLY_EVENTS, ApplyObjects(tuple(one.request for one in begun)), key=key, deadline=deadline)
    answers, failure = _answers(runtime, spec)
    if failure is not None:
        for one in begun:
            _failed(store, one.write, failure, by, deadline=deadline)
        if not any(reports.values()):
            raise failure
        return {one.write.object_uid: _ended(reports, one, failure) for one in begun}
    for one in begun:
        uid = one.write.object_uid
        try:
            report = _answered(store, one.write, answers.get(uid, AppliedObject(uid)), by, deadline=deadline)
        except StoreError:
            raise
        except TidemarkError as error:
            _failed(store, one.write, error, by, deadline=deadline)
            ended[uid] = _ended(reports, one, error)
            continue
        if report is None:
            ended[uid] = ApplyOutcome(_together(reports[uid]), "a backfill of it has begun during the apply")
        else:
            reports[uid].append(report)
    return ended


def _answers(runtime: Runtime, spec: JobSpec) -> tuple[Mapping[str, AppliedObject], TidemarkError | None]:
    """The result of each object, or the error of the job, which has surely ended. Raises errors after which the job may
    still write.
    """
    try:
        answer = runtime.run(spec)
    except JobError as error:
        return {}, error
    try:
        return {one.uid: one for one in report_of(APPLY_EVENTS, answer).objects}, None
    except TidemarkError as error:
        return {}, error


def _ended(reports: Mapping[str, list[ApplyReport]], begun: _Begun, error: TidemarkError) -> ApplyOutcome:
    return ApplyOutcome(_together(reports[begun.write.object_uid]), error=error)


def _begin(
    connection: sa.Connection, *, runtime: Runtime, object_uid: str, by: Actor, deadline: datetime
) -> _Begun | str | None:
    """The apply to run; the reason if nothing can be applied; None if nothing is left."""
    limits, now = runtime.limits, runtime.store.clock()
    stored = replicated_objects.by_uid(connection, object_uid)
    found, one = replications.by_uid(connection, stored.object.replication_uid), stored.object
    write = object_writes.open_one(connection, object_uid)
    refused = _why_not(found.replication, one, write, dropping=found.dropping)
    if refused is not None:
        return refused
    start, end = one.applied, found.replication.captured
    if write is None:
        write = _taken_up(connection, one)
    if write is not None and (end is None or write.end is None or write.end > end):
        return "its last apply came further than what is captured now; the next captures get there"
    if write is None:
        if start is None or end is None or has_all(one, end):
            return None
        if stored.changed_until is None or stored.changed_until <= start:
            replicated_objects.apply(connection, one, end, shows=found.replication.captured_at, schema=one.schema)
            return None
        write = _written_ahead(connection, one, start, end, found.replication.captured_at, by, now, limits, deadline)
    object_writes.begin_job(connection, write, run=by.run, lease_until=now + limits.lease, deadline=deadline)
    return _Begun(write, _request(found.replication, one, write))


def _why_not(
    replication: Replication, one: ReplicatedObject, write: ObjectWrite | None, *, dropping: bool
) -> str | None:
    if dropping or not applies(replication.state):
        return f"nothing is applied: {'it is being dropped' if dropping else why_not(replication)}"
    refused = why_not_applied(one)
    if refused is None and write is not None and write.kind is WriteKind.BACKFILL:
        return "a backfill of it ended without an answer, and may be in the target: begin it again"
    return refused


def _taken_up(connection: sa.Connection, one: ReplicatedObject) -> ObjectWrite | None:
    """The apply that was interrupted by a backfill which wrote nothing. The target may have all or a part of the
    apply's range, under its number alone. None if no such apply exists, or if the object is at another position by now.
    """
    left = object_writes.left_over(connection, one.uid)
    if left is None or left.start != one.applied:
        return None
    object_writes.reopen(connection, left)
    return replace(left, state=WriteState.OPEN)


def _written_ahead(
    connection: sa.Connection,
    one: ReplicatedObject,
    start: LogPosition,
    end: LogPosition,
    as_of: datetime | None,
    by: Actor,
    now: datetime,
    limits: Limits,
    deadline: datetime,
) -> ObjectWrite:
    number = replicated_objects.draw_number(connection, one)
    write = ObjectWrite(one.uid, number, WriteKind.APPLY, now, now + limits.lease, deadline, by.run, start, end, as_of)
    object_writes.insert(connection, write)
    return write


def _request(replication: Replication, one: ReplicatedObject, write: ObjectWrite) -> ApplyEvents:
    start = write.start or one.applied or LogPosition("")
    return ApplyEvents(
        replication_uid=replication.uid,
        object_uid=one.uid,
        stream=replication.name,
        name=one.name,
        number=write.number,
        start=start,
        end=write.end or start,
        schema=one.schema,
        mode=one.mode,
        target=one.target,
        event_log=replication.event_log,
        invalid_values=replication.options.invalid_values,
        batches=replication.batches,
        source_id=one.source_id,
    )


def _answered(
    store: ControlStore, write: ObjectWrite, answer: AppliedObject, by: Actor, *, deadline: datetime
) -> ApplyReport | None:
    """The answer is stored, once; None where the write was given up. Raises the object's error."""
    if answer.report is None:
        raise from_record(answer.error) if answer.error else JobFailed(error="none", message="it has no result")
    report = answer.report
    return store.write(lambda connection: _stored(connection, store, write, report, by, deadline=deadline))


def _stored(
    connection: sa.Connection,
    store: ControlStore,
    write: ObjectWrite,
    report: ApplyReport,
    by: Actor,
    *,
    deadline: datetime,
) -> ApplyReport | None:
    """`applied` moves to where the job came; where a backfill is needed from there, the object keeps why.

    Raises ObjectFailed for an answer that is not of the range.
    """
    now = store.clock()
    object_writes.end_job(connection, write, deadline=deadline, at=now)
    if not object_writes.close(connection, write, WriteState.DONE, at=now, report=to_json(report)):
        known = object_writes.lookup(connection, write.object_uid, write.number)
        return None if known is None or known.report is None else from_json(ApplyReport, known.report)
    one = replicated_objects.by_uid(connection, write.object_uid).object
    whole = report.applied == write.end
    of_the_range = (
        write.start is not None
        and write.end is not None
        and write.start <= report.applied <= write.end
        and (whole or report.needs_backfill is not None)
    )
    why = None if report.needs_backfill is None else store.hide(report.needs_backfill)
    shows = write.as_of if whole else None
    if not of_the_range or not replicated_objects.apply(
        connection, one, report.applied, shows=shows, schema=report.schema, needs_backfill=why
    ):
        came_to = position_text(report.applied)
        raise ObjectFailed(
            object=one.name.text,
            problem=f"its apply {write.number} reports {came_to}, which was not requested",
            position="its start" if one.applied is None else position_text(one.applied),
            remedy="Backfill it.",
        )
    if why is not None:
        keep_of(connection, one, reason=BackfillNeeded.__name__, message=why, at=now, by=by)
    return report


def _failed(store: ControlStore, write: ObjectWrite, error: TidemarkError, by: Actor, *, deadline: datetime) -> None:
    """The object keeps what it met, and the write stays open."""

    def fail(connection: sa.Connection) -> None:
        now, problem = store.clock(), store.hide(str(error))
        object_writes.end_job(connection, write, deadline=deadline, at=now)
        known = object_writes.lookup(connection, write.object_uid, write.number)
        if known is not None and known.state is WriteState.OPEN:
            replicated_objects.set_problem(connection, write.object_uid, problem)
            one = replicated_objects.by_uid(connection, write.object_uid).object
            keep_of(connection, one, reason=type(error).__name__, message=problem, at=now, by=by)

    store.write(fail)


def _together(reports: Sequence[ApplyReport]) -> ApplyReport | None:
    """All of them as one: the last one's end, and the sums."""
    if not reports:
        return None
    rows: dict[str, int] = {}
    for one in reports:
        for kind, count in one.rows.items():
            rows[kind] = rows.get(kind, 0) + count
    return replace(
        reports[-1],
        segments=sum(one.segments for one in reports),
        events=sum(one.events for one in reports),
        found=sum(one.found for one in reports),
        rows=rows,
        newest_source_timestamp=max(
            (one.newest_source_timestamp for one in reports if one.newest_source_timestamp is not None), default=None
        ),
    )
