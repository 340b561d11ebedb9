"""A replication without Spark and without a database: a source that commits, jobs that answer as real ones would, and
that die where they are told to.

The event log is a real Delta log of commits without files. A target remembers which write it had last and up to where;
a job that would lose an event, or apply one twice, says so in `World.wrongs`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Any

from tests.applies import run_apply
from tests.control.change_stream_model import EXACT, Clock
from tidemark.control.store import ControlStore
from tidemark.errors import JobDied, JobFailed, SlotAhead, SlotLost, SourceUnreachable, TargetMovedOn, TidemarkError
from tidemark.lake.event_logs import EventBatch, capture_app_id
from tidemark.model.codec import from_plain, to_plain
from tidemark.model.jobs import Job, JobResult, JobSpec
from tidemark.model.source_address import SourceKind
from tidemark.model.streams import TableRef
from tidemark.replication.model.jobs import (
    APPLY_EVENTS,
    BACKFILL_OBJECT,
    BACKFILL_OBJECTS,
    CAPTURE_EVENTS,
    EXPIRE_EVENTS,
    AppliedObject,
    AppliedObjects,
    ApplyEvents,
    ApplyObjects,
    ApplyReport,
    BackfilledObject,
    BackfilledObjects,
    BackfillObject,
    BackfillObjects,
    BackfillReport,
    CaptureEvents,
    CaptureReport,
    ExpireEvents,
    ExpireReport,
)
from tidemark.replication.model.replication import (
    Actor,
    Column,
    FoundObject,
    LogPosition,
    ObjectName,
    ReplicatedObject,
    Replication,
    ReplicationOptions,
    Selection,
    TableSchema,
    TypeKind,
    UnifiedType,
)
from tidemark.replication.worker import lifecycle
from tidemark.replication.worker.apply import ApplyOutcome, apply_objects
from tidemark.replication.worker.backfill import BackfillOutcome, run_backfill
from tidemark.replication.worker.capture import capture
from tidemark.replication.worker.definitions import create_replication, get_replication
from tidemark.replication.worker.objects import Registered, get_object, objects_of, register, to_apply
from tidemark.replication.worker.retention import EventsExpired, expire_events
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.runtime import Runtime

__all__ = ["ME", "Ends", "Source", "WorkerDied", "World", "at", "columns", "found"]

ME = Actor("me", "because", "dag/run-1/task/-1")
OF_S = Selection(include=("s",))
LONG = UnifiedType(TypeKind.LONG)


class WorkerDied(BaseException):
    """The worker is gone in the middle of its work."""


class Ends(Enum):
    """How a job ends."""

    WELL = "well"
    ERROR = "it answers with an error, and has done nothing; a backfill that finds its copy answers that"
    ERROR_BEHIND = "it does its work, and fails behind it"
    JOB_DIED_BEFORE = "it dies before it has done anything"
    JOB_DIED_AFTER = "it dies behind its work, without an answer"
    WORKER_DIED_BEFORE = "the worker dies, and the job does its work later"
    WORKER_DIED_AFTER = "the worker dies behind the job's work"


def at(number: int) -> LogPosition:
    return LogPosition(f"{number:016X}")


def columns(*names: str, key: str = "id") -> TableSchema:
    return TableSchema(tuple(Column(name, LONG, "bigint", key=name == key) for name in names))


def found(name: str, source_id: str = "", **how: Any) -> FoundObject:
    schema, _, table = name.partition(".")
    how.setdefault("schema", columns("id", "x"))
    return FoundObject(name=ObjectName(schema, table), source_id=source_id or f"id of {name}", **how)


@dataclass
class Source:
    """A database: what it has committed, as (position, table id), and one slot."""

    system: str = "cluster-1"
    head: int = 16
    commits: list[tuple[int, str]] = field(default_factory=list)
    slot: int | None = None
    down: bool = False
    lag_bytes: int = 0  # of its log behind a capture when that ends

    def commit(self, *source_ids: str) -> None:
        for one in source_ids:
            self.commits.append((self.head, one))
            self.head += 1

    def of(self, source_id: str, start: LogPosition, end: LogPosition) -> list[int]:
        return [number for number, one in self.commits if one == source_id and start <= at(number) < end]

    def make_slot(self) -> LogPosition:
        self.slot = self.head
        return at(self.head)

    def current_position(self, replication: Replication | None = None) -> LogPosition:
        if self.down:
            raise SourceUnreachable(source="the source", problem="it is down")
        return at(self.head)

    def require_ours(self, replication: Replication) -> LogPosition:
        self.current_position()
        if self.slot is None:
            raise SlotLost(slot=replication.slot, problem="is gone", position=str(replication.captured))
        if replication.captured is not None and at(self.slot) > replication.captured:
            raise SlotAhead(slot=replication.slot, found=str(self.slot), expected=str(replication.captured))
        return at(self.slot)

    def has_changes(self, replication: Replication, until: LogPosition) -> bool:
        return any(self.slot is not None and self.slot <= number and at(number) < until for number, _ in self.commits)

    def gtids(self, replication: Replication, until: LogPosition) -> str:
        return ""

    def advance(self, replication: Replication, to: LogPosition) -> None:
        assert self.slot is not None
        self.slot = max(self.slot, int(to.commit, 16))


@dataclass
class EventLog:
    """A Delta log of batches; what they hold is beside it."""

    root: Path
    end: LogPosition | None = None
    batches: int = 0
    events: list[tuple[int, str]] = field(default_factory=list)
    batch_of: dict[int, int] = field(default_factory=dict)
    versions: int = 0

    def __post_init__(self) -> None:
        (self.root / "_delta_log").mkdir(parents=True)
        meta = {"id": "log", "schemaString": '{"type":"struct","fields":[]}', "partitionColumns": []}
        self._commit({"metaData": {**meta, "configuration": EXACT}}, {"protocol": {"minReaderVersion": 1}})

    def append(self, batch: EventBatch, app_id: str, events: list[tuple[int, str]]) -> None:
        self.end, self.batches = LogPosition(batch.end), batch.number
        self.events.extend(events)
        self.batch_of.update({number: batch.number for number, _ in events})
        self._commit({"txn": {"appId": app_id, "version": batch.number}}, metadata=batch.to_text())

    def _commit(self, *actions: dict[str, Any], metadata: str | None = None) -> None:
        info = {"operation": "WRITE", "inCommitTimestamp": 1_000 + self.versions, "userMetadata": metadata}
        lines = [{"commitInfo": info}, *actions]
        path = self.root / "_delta_log" / f"{self.versions:020d}.json"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.versions += 1


@dataclass
class Target:
    """The table of an object: its last write, exact at `base` and with every event before `end`."""

    number: int
    base: LogPosition
    end: LogPosition


@dataclass
class World:
    """A replication `r` of schema `s`, or another one, by a clock of its own."""

    store: ControlStore
    root: Path
    options: ReplicationOptions = field(default_factory=lambda: ReplicationOptions(target="lake"))
    clock: Clock = field(default_factory=Clock)
    source: Source = field(default_factory=Source)
    logs: dict[str, EventLog] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)
    late: list[JobSpec] = field(default_factory=list)  # jobs whose worker died before they did their work
    given: list[tuple[str, int, str]] = field(default_factory=list)  # object, number, kind of each job
    wrongs: list[str] = field(default_factory=list)
    jobs: int = 0
    name: str = "r"
    source_conn_id: str = "pg"
    selection: Selection = OF_S
    by: Actor = ME

    def __post_init__(self) -> None:
        self.store.clock = self.clock
        self.create(self.name)

    # what users and runs do

    def create(self, name: str, selection: Selection | None = None, **how: Any) -> Replication:
        wanted = {"options": self.options, "event_log": (self.root / "events").as_uri(), **how}
        return create_replication(
            self.store,
            name=name,
            kind=SourceKind.POSTGRESQL,
            source_conn_id=self.source_conn_id,
            selection=selection or self.selection,
            by=self.by,
            **wanted,
        )

    def start(self, *tables: str) -> None:
        lifecycle.start(self.store, self.name, by=self.by)
        lifecycle.validated(
            self.store, self.name, system_id=self.source.system, position=self.source.make_slot(), by=self.by
        )
        self.register(*(found(name) for name in tables))

    def register(self, *there: FoundObject) -> Registered:
        return register(self.store, self.name, there, targets=_target, by=self.by)

    def capture(self, ends: Ends = Ends.WELL, by: Actor = ME) -> CaptureReport | None:
        paths = JobPaths("/w", "/x")
        return capture(Runtime(self.store, run=self.runner(ends), paths=paths), self.name, source=self.source, by=by)

    def backfill(self, name: str, ends: Ends = Ends.WELL, by: Actor = ME, **how: Any) -> BackfillOutcome:
        return run_backfill(
            Runtime(self.store, run=how.pop("run", None) or self.runner(ends), paths=JobPaths("/w", "/x")),
            self.object(name).uid,
            by=by,
            cancel=how.pop("cancel", lambda: None),
            read_progress=how.pop("read_progress", lambda spec: None),
            **how,
        )

    def apply(self, name: str, ends: Ends = Ends.WELL, by: Actor = ME, **how: Any) -> ApplyOutcome:
        return run_apply(
            Runtime(self.store, run=how.pop("run", None) or self.runner(ends), paths=JobPaths("/w", "/x")),
            self.object(name).uid,
            by=by,
        )

    def apply_all(self, ends: Ends = Ends.WELL, by: Actor = ME) -> Mapping[str, ApplyOutcome]:
        """Everything that can be applied now, in one job; by name."""
        runtime = Runtime(self.store, run=self.runner(ends), paths=JobPaths("/w", "/x"))
        names = {one.uid: one.name.text for one in to_apply(self.store, self.name)}
        return {names[uid]: one for uid, one in apply_objects(runtime, list(names), by=by).items()}

    def expire(self, ends: Ends = Ends.WELL) -> EventsExpired:
        """Everything is old."""
        paths = JobPaths("/w", "/x")
        return expire_events(Runtime(self.store, run=self.runner(ends), paths=paths), self.name, keep=timedelta(0))

    def replicated(self, *names: str) -> None:
        """Started, backfilled and captured."""
        self.start(*names)
        for name in names:
            self.backfill(name)

    @property
    def replication(self) -> Replication:
        return get_replication(self.store, self.name)

    def object(self, name: str) -> ReplicatedObject:
        return get_object(self.store, self.name, name)

    def objects(self) -> tuple[ReplicatedObject, ...]:
        return objects_of(self.store, self.name)

    # what jobs do

    def runner(self, ends: Ends) -> Callable[[JobSpec], JobResult]:
        def run(spec: JobSpec) -> JobResult:
            self.jobs += 1
            if ends is Ends.WORKER_DIED_BEFORE:
                self.late.append(spec)
                raise WorkerDied
            if ends is Ends.JOB_DIED_BEFORE:
                raise JobDied(key="k", exit_code=1, tail="")
            if ends is Ends.ERROR and not self._is_found(spec):
                return JobResult(error=SourceUnreachable(source="the source", problem="it went away").to_record())
            answer = self.work(spec)
            if ends is Ends.ERROR_BEHIND:
                return JobResult(error=JobFailed(error="Py4JJavaError", message="the checkpoint failed").to_record())
            if ends is Ends.JOB_DIED_AFTER:
                raise JobDied(key="k", exit_code=1, tail="")
            if ends is Ends.WORKER_DIED_AFTER:
                raise WorkerDied
            return answer

        return run

    def _is_found(self, spec: JobSpec) -> bool:
        """Whether a backfill sees its copy in the target, where it looks before it asks the source."""
        if spec.kind != BACKFILL_OBJECT.name:
            return False
        ask = from_plain(BackfillObject, spec.request)
        target = self.targets.get(ask.object.uid)
        return target is not None and target.number == ask.number

    def work(self, spec: JobSpec) -> JobResult:
        """What the job of that kind does, once more where it is asked once more."""
        jobs: dict[Job[Any, Any], Callable[[Any], Any]] = {
            CAPTURE_EVENTS: self._capture,
            BACKFILL_OBJECT: self._backfill,
            BACKFILL_OBJECTS: self._backfill_all,
            APPLY_EVENTS: self._apply,
            EXPIRE_EVENTS: self._expire,
        }
        job = next(one for one in jobs if one.name == spec.kind)
        try:
            return JobResult(to_plain(jobs[job](job.requested(spec))))
        except TidemarkError as error:
            return JobResult(error=error.to_record())

    def log(self, uri: str) -> EventLog:
        if uri not in self.logs:
            self.logs[uri] = EventLog(Path(uri.removeprefix("file://")))
        return self.logs[uri]

    def _capture(self, ask: CaptureEvents) -> CaptureReport:
        """Only what this attempt writes is counted: what an earlier one had written is not in its answer."""
        log = self.log(ask.event_log)
        end, batches = max(log.end or ask.captured, ask.captured), max(log.batches, ask.batches)
        if self.source.slot is None or at(self.source.slot) > end:
            raise SlotAhead(slot=ask.slot, found=str(self.source.slot), expected=str(end))
        names = {one.source_id: one.name.text for one in ask.objects}
        assert ask.until is not None
        events = [(n, one) for n, one in self.source.commits if end <= at(n) < ask.until and one in names]
        if events:
            batches += 1
            batch = EventBatch(ask.replication_uid, batches, end.commit, ask.until.commit, "a", len(events))
            log.append(batch, capture_app_id(self.store.store_id, ask.replication_uid), events)
        end = max(end, ask.until)
        if log.end is not None:
            self.source.slot = max(self.source.slot, int(log.end.commit, 16))
        counts: dict[str, int] = {}
        for _, one in events:
            counts[names[one]] = counts.get(names[one], 0) + 1
        return CaptureReport(
            captured=end, batches=batches, transactions=len(events), events=counts, lag_bytes=self.source.lag_bytes
        )

    def _backfill_all(self, ask: BackfillObjects) -> BackfilledObjects:
        return BackfilledObjects(tuple(self._backfilled(one) for one in ask.objects))

    def _backfilled(self, ask: BackfillObject) -> BackfilledObject:
        try:
            return BackfilledObject(ask.object.uid, self._backfill(ask))
        except TidemarkError as error:
            return BackfilledObject(ask.object.uid, error=error.to_record())

    def _backfill(self, ask: BackfillObject) -> BackfillReport:
        one, snapshot = ask.object, self.source.current_position()
        self.given.append((one.uid, ask.number, "backfill"))
        target = self.targets.get(one.uid)
        if target is not None and target.number > ask.number:
            raise TargetMovedOn(target=one.target.name, found=target.number, number=ask.number)
        there = target is not None and target.number == ask.number
        if not there:
            if ask.catch_up is not None and snapshot < ask.catch_up:
                self.wrongs.append(f"backfill {ask.number} of {one.name.text} goes back")
            self.targets[one.uid] = target = Target(ask.number, snapshot, snapshot)
        assert target is not None
        ref = TableRef(one.target.name, one.target.path, f"table of {one.name.text}")
        return BackfillReport(target.base, target.end, 3, one.schema, ref, found=there)

    def _apply(self, ask: ApplyObjects) -> AppliedObjects:
        return AppliedObjects(tuple(self._applied(one) for one in ask.objects))

    def _applied(self, ask: ApplyEvents) -> AppliedObject:
        try:
            return AppliedObject(ask.object_uid, self._apply_one(ask))
        except TidemarkError as error:
            return AppliedObject(ask.object_uid, error=error.to_record())

    def _apply_one(self, ask: ApplyEvents) -> ApplyReport:
        self.given.append((ask.object_uid, ask.number, "apply"))
        target = self.targets.setdefault(ask.object_uid, Target(0, ask.start, ask.start))
        if target.number > ask.number:
            raise TargetMovedOn(target=ask.target.name, found=target.number, number=ask.number)
        log = self.log(ask.event_log)
        source_id = next(one.source_id for one in self.objects() if one.uid == ask.object_uid)
        held = [n for n, one in log.events if one == source_id and ask.start <= at(n) < ask.end]
        if target.number < ask.number:
            self._compare(ask, target, source_id, held)
            target.number, target.end = ask.number, ask.end
        elif target.end != ask.end:
            self.wrongs.append(f"apply {ask.number} of {ask.name.text} was given other bounds")
        return ApplyReport(ask.end, ask.schema, 1, len(held), {"inserted": len(held)})

    def _expire(self, ask: ExpireEvents) -> ExpireReport:
        """Whatever may go, goes."""
        log = self.log(ask.event_log)
        old = [(n, one) for n, one in log.events if log.batch_of[n] < ask.batches]
        held = [(n, one) for n, one in old if one in ask.needed and at(n) >= ask.needed[one]]
        log.events = [*held, *(event for event in log.events if event not in old)]
        return ExpireReport(len(old) - len(held), Counter(one for _, one in held))

    def _compare(self, ask: ApplyEvents, target: Target, source_id: str, held: list[int]) -> None:
        who = f"apply {ask.number} of {ask.name.text}, [{ask.start.commit}, {ask.end.commit}),"
        if ask.start < target.end:
            self.wrongs.append(f"{who} applies events again: its target has them up to {target.end.commit}")
        if self.source.of(source_id, target.end, ask.start):
            self.wrongs.append(f"{who} leaves events out: its target has them up to {target.end.commit} only")
        if held != self.source.of(source_id, ask.start, ask.end):
            self.wrongs.append(f"{who} has {held}, and the source had {self.source.of(source_id, ask.start, ask.end)}")


def _target(name: ObjectName) -> TableRef:
    return TableRef(f"lake.{name.folded}", f"file:///lake/{name.folded}", "")
