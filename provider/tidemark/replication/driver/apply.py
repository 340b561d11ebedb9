"""The events of an object in a range of its source's log, applied to its target, each once.

The events are cut if their order over several keys decides about a row (`replication.planning.barriers`). Each part is
one commit of the target, under the number of the apply and its own. So after any end of an attempt the next one finds
the parts that exist, and continues behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tidemark.errors import TidemarkError, ToastedKey
from tidemark.jobs.spark_failures import SPARK_FAILURES
from tidemark.lake.event_logs import capture_app_id
from tidemark.model.codec import to_plain
from tidemark.replication.driver.bags import merge_bag, missing_rows
from tidemark.replication.driver.columns import invalid_columns
from tidemark.replication.driver.event_log import require_whole, widths
from tidemark.replication.driver.fold import Folding
from tidemark.replication.driver.object_events import ObjectEvents
from tidemark.replication.driver.segments import append_rows, change_columns, merge_rows, missing_row, truncate
from tidemark.replication.driver.target_table import Target
from tidemark.replication.driver.values import named_invalid_value
from tidemark.replication.driver.wide_rows import fitted
from tidemark.replication.model.jobs import ApplyEvents, ApplyReport
from tidemark.replication.model.marks import SEGMENTS, ObjectMark, ObjectWrite
from tidemark.replication.model.replication import LogPosition, TableSchema, WriteMode
from tidemark.replication.planning.barriers import Segment, SegmentKind, SegmentPlan, plan_segments

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["apply_events", "position_text"]

REMEDY = "Backfill the object. It continues from there."


def _nothing(*_: str) -> None:
    return None


def apply_events(
    session: SparkSession,
    store_id: str,
    request: ApplyEvents,
    options: Mapping[str, str] | None = None,
    *,
    say: Callable[[str], None] = _nothing,
    stop_if_due: Callable[[], None] = _nothing,
    stop_after: int | None = None,
) -> ApplyReport:
    """Apply the events [start, end) to the target, which is made if it does not exist.

    `stop_after`: the most segments; the report says how far it came. A second run, also at the same time, writes the
    missing segments and answers the same; `found` counts the existing ones.

    Raises ValueDoesNotFit, ToastedKey and ObjectFailed, whose fact `applied` is the position before which the target
    has every event. Raises TargetMovedOn if a newer write came first. Raises TargetLost if the table is gone, another,
    restored, or has another write of that number. Before anything is written, raises TargetNotDelta, and
    EventLogChanged if the event log is not whole. It then also raises ReplicationRefused for a target with rows of
    others.
    """
    target = Target(request.target, store_id, request.object_uid, options, stop_if_due)
    target = target.make(session, request.schema, request.mode, replication=request.stream)
    target.has(
        _mark(request, 0, request.start), request.end
    )  # a newer or another write is known before anything is read
    log = require_whole(session, store_id, request, options)
    newest = target.newest()
    widest, mean = widths(log, capture_app_id(store_id, request.replication_uid))
    widest = max(widest, 0 if newest is None else newest.mark.widest)
    with fitted(session, widest, mean):
        return _written(session, request, target, widest, say, stop_after)


def _written(
    session: SparkSession,
    request: ApplyEvents,
    target: Target,
    widest: int,
    say: Callable[[str], None],
    stop_after: int | None,
) -> ApplyReport:
    events = ObjectEvents(session, request)
    plan = _planned(session, request, target, events, SEGMENTS - 1 if stop_after is None else stop_after)
    writing = _Writing(session, request, target, events, plan, widest)
    for segment in plan.segments:
        needs_backfill = writing.write(segment)
        if needs_backfill is not None:
            return writing.report(segment.start, segment.schema_before, needs_backfill)
        say(f"{request.name.text}: segment {segment.number} of {len(plan.segments)} is in {request.target.name}")
    if plan.toasted_key:
        raise ToastedKey(object=request.name.text, position=position_text(plan.end), applied=to_plain(plan.end))
    return writing.report(plan.end, plan.schema, plan.needs_backfill)


def _planned(
    session: SparkSession, request: ApplyEvents, target: Target, events: ObjectEvents, most: int
) -> SegmentPlan:
    """The unknown values of old rows do not matter to a target without rows. So the target is looked at only if they
    would matter. A target may have rows only because an attempt before judged so, and continued: then it had none.
    """
    barriers = list(events.barriers())
    cut = partial(
        plan_segments,
        start=request.start,
        end=request.end,
        schema=request.schema,
        mode=request.mode,
        barriers=barriers,
        most=most,
    )
    plan = cut()
    if plan.needs_backfill is None or events.first_row < plan.end:
        return plan
    empty = session.read.format("delta").load(target.ref.path).isEmpty()
    newest = None if empty else target.newest()  # looked at behind the rows
    went_on = newest is not None and newest.mark.number == request.number and newest.mark.end > plan.end
    return cut(empty_until=events.first_row) if empty or went_on else plan


def position_text(position: LogPosition) -> str:
    """A position as people read it."""
    return f"{position.commit}/{position.sequence}"


def _mark(request: ApplyEvents, segment: int, end: LogPosition, widest: int = 0) -> ObjectMark:
    return ObjectMark(request.object_uid, request.number, segment, request.start, end, ObjectWrite.APPLY, widest=widest)


@dataclass
class _Writing:
    """The segments of an apply on their way to the target, whose rows have up to `widest` bytes."""

    session: SparkSession
    request: ApplyEvents
    target: Target
    events: ObjectEvents
    plan: SegmentPlan
    widest: int
    found: int = 0

    def write(self, segment: Segment) -> str | None:
        """Write it, unless the target has it. Says why only a backfill continues from it; None if that is not so."""
        mark = _mark(self.request, segment.number, segment.end, self.widest)
        if self.target.has(mark):
            self.found += 1
            return None
        if segment.kind is SegmentKind.SCHEMA:
            invalid = invalid_columns(self.target.schema(), segment.schema)
            if invalid is not None:
                return invalid
        command = self._command(segment)
        if command is None:
            return None
        try:
            self.found += self.target.write_once(
                self.session,
                mark,
                command,
                point=f"segment{segment.number}",
                may_do_nothing=segment.kind is SegmentKind.TRUNCATE,
            )
        except SPARK_FAILURES as error:
            named = self._named(str(error), segment)
            if named is None:
                raise
            raise named from error
        return None

    def report(self, applied: LogPosition, schema: TableSchema, needs_backfill: str | None) -> ApplyReport:
        """The result of this attempt and those before it."""
        events = self.events if applied == self.request.end else ObjectEvents(self.session, self.request, end=applied)
        rows = {"inserted": 0, "updated": 0, "deleted": 0}
        for one in self.target.writes():
            if one.mark.number != self.request.number:
                break
            for name, count in one.rows.items():
                rows[name] += count
        return ApplyReport(
            applied=applied,
            schema=schema,
            segments=len([one for one in self.plan.segments if one.end <= applied]),
            events=events.rows,
            rows=rows,
            newest_source_timestamp=events.newest,
            needs_backfill=needs_backfill,
            found=self.found,
        )

    def _command(self, segment: Segment) -> Callable[[], None] | None:
        """The command that writes the segment; None if there is nothing to write."""
        request = self.request
        if segment.kind is SegmentKind.TRUNCATE:
            return lambda: truncate(self.session, self.target)
        folding = Folding(request.name.text, segment.schema, self.events.unchanged, request.invalid_values)
        if segment.change is not None:
            at, keyed = position_text(segment.start), request.mode is WriteMode.MERGE
            return change_columns(self.session, self.target, segment.change, folding, at=at, keyed=keyed)
        rows = self.events.between(segment.start, segment.end)
        if self.events.rows == 0 or (len(self.plan.segments) > 1 and rows.isEmpty()):
            return None
        if request.mode is WriteMode.APPEND_ONLY:
            return lambda: append_rows(self.target, rows, folding)
        if not segment.schema.keys:
            return lambda: merge_bag(self.session, self.target, rows, folding, widest=self.widest)
        moves, widest = self.events.moves, self.widest
        return lambda: merge_rows(self.session, self.target, rows, folding, moves=moves, widest=widest)

    def _named(self, text: str, segment: Segment) -> TidemarkError | None:
        applied = to_plain(segment.start)
        at = position_text(segment.start)
        invalid = named_invalid_value(text, applied=applied)
        missing = missing_row(text, at, REMEDY, applied=applied) or missing_rows(text, at, REMEDY, applied=applied)
        return invalid or missing
