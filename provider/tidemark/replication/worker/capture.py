"""Capture: one bounded job, and what the store learns from it; the slot moves on last.

The event log is the truth. A worker, or a job, may die at any step:
- before the job has committed: nothing has happened;
- after a commit to the event log, and after its slot moved on: the log is further than the store. The next run's look
  at the slot compares it with the log, its job takes up the log's end and says it;
- after the store has moved and before the slot did: the slot is behind; the next run corrects that before it looks.

The store learns from the answer which objects have events. If an answer is missing, or two captures ran at once, the
store assumes that every object has some.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime
from typing import Protocol

import sqlalchemy as sa

from tidemark.control.samples import keep_sample
from tidemark.control.store import ControlStore
from tidemark.errors import (
    EventLogChanged,
    NotADeltaTable,
    ReplicationNotFound,
    ReplicationRefused,
    SlotAhead,
    SlotBusy,
    StoreError,
    TableNotFound,
    TidemarkError,
)
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.event_logs import batches, capture_app_id
from tidemark.model.statements import TransactionKey
from tidemark.replication.model.jobs import CAPTURE_EVENTS, CapturedObject, CaptureEvents, CaptureReport
from tidemark.replication.model.replication import Actor, LogPosition, ObjectState, Replication, ReplicationState
from tidemark.replication.planning.lifecycle import captures, why_not
from tidemark.replication.planning.positions import position_text
from tidemark.replication.planning.seen_tables import beyond
from tidemark.replication.planning.showing import rules_of
from tidemark.replication.store import replicated_objects, replications
from tidemark.replication.store.replicated_objects import StoredObject
from tidemark.replication.store.replications import Captured
from tidemark.replication.worker.gaps import mark_copied_ahead
from tidemark.replication.worker.lifecycle import settle, went_well
from tidemark.streams.worker.left_drivers import take_up_jobs
from tidemark.streams.worker.runtime import Runtime, report_of

__all__ = ["OpenLog", "SourceGate", "capture", "require_slot"]

log = logging.getLogger(__name__)

OpenLog = Callable[[str], DeltaLog]
"""Opens the event log of a replication by its path. Raises TableNotFound, NotADeltaTable."""


class SourceGate(Protocol):
    """The source in the worker. Everything raises SourceUnreachable, SourceRefused, SourceDriverNotInstalled."""

    def current_position(self, replication: Replication | None = None) -> LogPosition:
        """The current end of the log: all that was committed before this call is before it."""
        ...

    def require_ours(self, replication: Replication) -> LogPosition:
        """Up to where the slot was moved. Raises SourceIsAnother, SlotLost, SlotForeign, SlotBusy; SlotAhead if that is
        past `replication.captured`, SourceSetBack if the log itself does not reach it yet.
        """
        ...

    def has_changes(self, replication: Replication, until: LogPosition) -> bool:
        """Whether the slot has anything of the publication before `until`; moves nothing."""
        ...

    def gtids(self, replication: Replication, until: LogPosition) -> str:
        """The GTIDs of all transactions before `until`, if `has_changes` has found nothing before it."""
        ...

    def advance(self, replication: Replication, to: LogPosition) -> None:
        """The slot releases the log before `to`; a slot that is at `to` or past it stays."""
        ...


def capture(
    runtime: Runtime,
    name: str,
    *,
    source: SourceGate,
    by: Actor,
    key: TransactionKey | None = None,
    open_log: OpenLog = DeltaLog.open,
) -> CaptureReport | None:
    """Put into the event log what the source has committed up to now. None where nothing is new, which needs no job,
    and where the replication is draining or paused.

    A run that goes well heals one that FAILED; an error is kept (`settle`), but for SlotBusy: another run is at it. A
    second run captures what came since. Raises ReplicationNotFound, ReplicationRefused (not started, failed for good,
    being dropped), what `source` raises, JobError, EventLogChanged, and the errors of the job.
    """
    store = runtime.store
    found = store.read(lambda connection: replications.find(connection, name))
    replication = found.replication
    if replication.state in (ReplicationState.DRAINING, ReplicationState.PAUSED):
        return None
    if found.dropping or not captures(replication.state):
        problem = "it is being dropped." if found.dropping else f"nothing is captured: {why_not(replication)}."
        raise ReplicationRefused(replication=replication.name, problem=problem)
    capturing = _Capturing(runtime, replication, source, by, key, open_log)
    try:
        report = capturing.run()
        went_well(store, name, by=by)
        return report
    except (StoreError, ReplicationNotFound, SlotBusy):
        raise
    except TidemarkError as error:
        settle(store, name, error=error, by=by)
        raise


def require_slot(
    store: ControlStore, replication: Replication, source: SourceGate, *, open_log: OpenLog = DeltaLog.open
) -> LogPosition:
    """The position up to which the slot was moved. The slot is ours, and it has released nothing that the event log
    does not have.

    The store may be behind both, if a capture's worker died before it could report. Then the log itself is asked.
    Another run may have moved all three since `replication` was read. So a slot is ahead only if it was moved past what
    store and log say afterwards. Raises SourceIsAnother, SourceSetBack, SlotLost, SlotForeign, SlotBusy, SlotAhead.
    """
    while True:
        try:
            return source.require_ours(replication)
        except SlotAhead:
            known = _known(store, replication, open_log)
            if known is None:
                raise
            replication = known


def _known(store: ControlStore, replication: Replication, open_log: OpenLog) -> Replication | None:
    """The replication of now, captured up to where store or log say; None if that is no further than before."""
    now = store.read(lambda connection: replications.by_uid(connection, replication.uid)).replication
    ends = [one for one in (now.captured, _end_of_log(now, store.store_id, open_log)) if one is not None]
    if not ends or (replication.captured is not None and max(ends) <= replication.captured):
        return None
    return replace(now, captured=max(ends))


def _end_of_log(replication: Replication, store_id: str, open_log: OpenLog) -> LogPosition | None:
    try:
        opened = open_log(replication.event_log)
    except (TableNotFound, NotADeltaTable):
        return None
    newest = next(batches(opened, capture_app_id(store_id, replication.uid)), None)
    return None if newest is None else LogPosition(newest.end)


class _Capturing:
    """One run, from the store's position when it began."""

    def __init__(
        self,
        runtime: Runtime,
        replication: Replication,
        source: SourceGate,
        by: Actor,
        key: TransactionKey | None,
        open_log: OpenLog,
    ) -> None:
        self.runtime = runtime
        self.store = runtime.store
        self.replication = replication
        self.captured = replication.captured or LogPosition("")
        self.source = source
        self.by = by
        self.key = key
        self.open_log = open_log

    def run(self) -> CaptureReport | None:
        """Once more, if another run has moved on the store, and the slot behind it: the job cannot ask the store."""
        while True:
            try:
                return self.run_once()
            except SlotAhead:
                found = self.store.read(lambda connection: replications.by_uid(connection, self.replication.uid))
                known = found.replication
                if known.captured is None or known.captured <= self.captured:
                    raise
                self.replication, self.captured = known, known.captured

    def run_once(self) -> CaptureReport | None:
        """`until` is read before the list of objects, so that an object which comes later begins behind it."""
        take_up_jobs(self.runtime, self.key)  # one that lives holds the slot
        confirmed = require_slot(self.store, self.replication, self.source, open_log=self.open_log)
        if confirmed < self.captured:
            self.source.advance(self.replication, self.captured)
        at = self.store.clock()
        until = self.source.current_position(self.replication)
        if confirmed <= self.captured and not self.source.has_changes(self.replication, until):
            gtids = self.source.gtids(self.replication, until)
            self.store.write(lambda connection: self._nothing_until(connection, until, at, gtids))
            self.source.advance(self.replication, until)
            return None
        attempt = self.store.new_id()
        deadline = self.runtime.deadline()
        request, unclear = self.store.write(lambda connection: self._begun(connection, attempt, until, deadline))
        spec = self.runtime.spec(CAPTURE_EVENTS, request, key=self.key, deadline=deadline)
        report = report_of(CAPTURE_EVENTS, self.runtime.run(spec))
        _require_further(request, report)
        self.store.write(lambda connection: self._stored(connection, request, report, attempt, unclear=unclear, at=at))
        return report

    def _nothing_until(self, connection: sa.Connection, until: LogPosition, at: datetime, gtids: str) -> None:
        """The slot has nothing of ours before `until`. If another capture is under way it may be what has taken it."""
        found = replications.by_uid(connection, self.replication.uid)
        known = self.replication
        if (found.replication.event_log, found.replication.system_id) != (known.event_log, known.system_id):
            return
        if _reaches(found.replication, until):
            return
        if found.attempt is not None:
            _note(connection, replicated_objects.of_replication(connection, found.replication.uid), until)
        lag = Captured(until, at, found.replication.batches, lag_bytes=0, gtids=gtids)
        replications.advance(connection, found.replication, lag, by=self.by)

    def _begun(
        self, connection: sa.Connection, attempt: str, until: LogPosition, deadline: datetime
    ) -> tuple[CaptureEvents, bool]:
        found = replications.by_uid(connection, self.replication.uid)
        if found.dropping or not captures(found.replication.state):
            problem = f"nothing is captured now: {why_not(found.replication)}."
            raise ReplicationRefused(replication=found.replication.name, problem=problem)
        replications.begin_capture(connection, found.replication.uid, attempt, until=deadline)
        objects = replicated_objects.of_replication(connection, found.replication.uid)
        return _request(found.replication, objects, until), found.attempt is not None

    def _stored(
        self,
        connection: sa.Connection,
        request: CaptureEvents,
        report: CaptureReport,
        attempt: str,
        *,
        unclear: bool,
        at: datetime,
    ) -> None:
        """Positions and batches only grow, even if the later of two concurrent captures is stored first."""
        found = replications.by_uid(connection, request.replication_uid).replication
        alone = replications.end_capture(connection, found.uid, attempt) and not unclear
        if found.event_log != request.event_log:  # recovered meanwhile, into a new log
            return
        objects = replicated_objects.of_replication(connection, found.uid)
        changed = [one for one in objects if not alone or report.events.get(one.object.name.text, 0)]
        _note(connection, changed, report.captured)
        for one in objects:
            schema = report.schemas.get(one.object.name.text)
            if schema is not None:
                replicated_objects.record_schema(connection, one.object.uid, schema)
        position, batches = max(report.captured, found.captured or report.captured), max(report.batches, found.batches)
        captured = Captured(position, at, batches, report.lag_bytes, found.gtids or "", None)
        if position == report.captured:
            captured = replace(captured, gtids=report.gtids, server=report.server or None)
        if captured.server not in (None, found.system_id):
            mark_copied_ahead(connection, self.store, found, by=self.by)
        moved = replications.advance(connection, found, captured, by=self.by)
        if moved and batches > found.batches:
            self._sampled(connection, found, report, at)

    def _sampled(self, connection: sa.Connection, found: Replication, report: CaptureReport, at: datetime) -> None:
        """`found`: as it was before. Its lag lasted until now, when the answer is stored."""
        now, events = self.store.clock(), sum(report.events.values())
        seconds = max(0.0, (now - at).total_seconds())
        figures = {
            "transactions": report.transactions,
            "events": events,
            **({"events_per_second": round(events / seconds, 1)} if seconds else {}),
            "seconds": seconds,
            "lag_seconds": max(0.0, (now - (found.captured_at or at)).total_seconds()),
            "lag_bytes": report.lag_bytes,
        }
        keep_sample(connection, "replication", found.uid, at=now, run=self.by.run, figures=figures)


def _reaches(replication: Replication, until: LogPosition) -> bool:
    return replication.captured is None or replication.captured >= until


def _note(connection: sa.Connection, objects: Collection[StoredObject], until: LogPosition) -> None:
    for one in objects:
        if one.changed_until is None or one.changed_until < until:
            replicated_objects.record_changes(connection, one.object.uid, until)


def _request(replication: Replication, objects: Collection[StoredObject], until: LogPosition) -> CaptureEvents:
    """An object that is gone stays on the list: the log may have events of it from before."""
    by_name = replication.kind.folds_columns
    captured = tuple(
        CapturedObject(
            one.object.name,
            one.object.source_id,
            one.keys,
            one.captured_schema,
            one.excluded,
            one.object.schema,
            rules_of(replication.selection, replication.options, one.held, by_name=by_name),
            None if one.seen is None else beyond(one.seen, one.captured_schema or one.object.schema),
        )
        for one in objects
        if one.object.source_id and one.object.selected and one.object.state is not ObjectState.UNSUPPORTED
    )
    there = {one.source_id for one in captured}
    return CaptureEvents(
        replication_uid=replication.uid,
        stream=replication.name,
        kind=replication.kind,
        event_log=replication.event_log,
        slot=replication.slot,
        publication=replication.publication,
        system_id=replication.system_id or "",
        captured=replication.captured or LogPosition(""),
        batches=replication.batches,
        objects=captured,
        options=replication.options,
        until=until,
        selection=replication.selection,
        left_out=tuple(one.object.source_id for one in objects if one.object.source_id not in there),
        gtids=replication.gtids or "",
    )


def _require_further(request: CaptureEvents, report: CaptureReport) -> None:
    """Raises EventLogChanged."""
    if report.captured < request.captured or report.batches < request.batches:
        problem = (
            f"ends at batch {report.batches} and {position_text(report.captured)}, before batch {request.batches} and "
            f"{position_text(request.captured)}, which it had"
        )
        raise EventLogChanged(event_log=request.event_log, replication=request.stream, problem=problem)
