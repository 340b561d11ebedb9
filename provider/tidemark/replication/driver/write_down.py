"""The events of an object in a range of its source's log, applied to its target, each once.

The events are cut where their order over several keys tells what becomes of a row (`replication.planning.barriers`);
each part is one commit of the target, under the number of the write-down and its own. So whatever ends an attempt, the
next one finds the parts that are there, and goes on behind them.
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
from tidemark.replication.driver.columns import unfit_columns
from tidemark.replication.driver.event_log import require_whole, widths
from tidemark.replication.driver.fold import Folding
from tidemark.replication.driver.object_events import ObjectEvents
from tidemark.replication.driver.segments import append_rows, change_columns, merge_rows, missing_row, truncate
from tidemark.replication.driver.target_table import Target
from tidemark.replication.driver.values import named_unfit_value
from tidemark.replication.driver.wide_rows import fitted
from tidemark.replication.model.jobs import WriteDown, WriteDownReport
from tidemark.replication.model.marks import SEGMENTS, ObjectMark, ObjectWrite
from tidemark.replication.model.replication import LogPosition, TableSchema, WriteMode
from tidemark.replication.planning.barriers import Segment, SegmentKind, SegmentPlan, plan_segments

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["position_text", "write_down"]

REMEDY = "Backfill the object; it goes on from there."


def _nothing(*_: str) -> None:
    return None


def write_down(
    session: SparkSession,
    store_id: str,
    ask: WriteDown,
    options: Mapping[str, str] | None = None,
    *,
    say: Callable[[str], None] = _nothing,
    stop_if_due: Callable[[], None] = _nothing,
    stop_after: int | None = None,
) -> WriteDownReport:
    """Apply the events [start, end) to the target, which is made where it is not there.

    `stop_after`: so many segments at most; the report says how far it came. A second run, also at the same time, writes
    what is missing and answers the same, with `found` counting what was there.

    Raises ValueDoesNotFit, ToastedKey and ObjectFailed, whose fact `applied` is the position before which the target
    has every event; TargetMovedOn where a newer write came first; TargetLost where the table is gone, another,
    restored, or has another write of that number; TargetNotDelta, EventLogChanged where the event log is not whole, and
    ReplicationRefused for a target with rows of others, before anything is written.
    """
    target = Target(ask.target, store_id, ask.object_uid, options, stop_if_due)
    target = target.make(session, ask.schema, ask.mode, replication=ask.stream)
    target.has(_mark(ask, 0, ask.start), ask.end)  # a newer or another write is known before anything is read
    log = require_whole(session, store_id, ask, options)
    newest = target.newest()
    widest, mean = widths(log, capture_app_id(store_id, ask.replication_uid))
    widest = max(widest, 0 if newest is None else newest.mark.widest)
    with fitted(session, widest, mean):
        return _written(session, ask, target, widest, say, stop_after)


def _written(
    session: SparkSession,
    ask: WriteDown,
    target: Target,
    widest: int,
    say: Callable[[str], None],
    stop_after: int | None,
) -> WriteDownReport:
    events = ObjectEvents(session, ask)
    plan = _planned(session, ask, target, events, SEGMENTS - 1 if stop_after is None else stop_after)
    writing = _Writing(session, ask, target, events, plan, widest)
    for segment in plan.segments:
        flagged = writing.write(segment)
        if flagged is not None:
            return writing.report(segment.start, segment.schema_before, flagged)
        say(f"{ask.name.text}: segment {segment.number} of {len(plan.segments)} is in {ask.target.name}")
    if plan.toasted_key:
        raise ToastedKey(object=ask.name.text, position=position_text(plan.end), applied=to_plain(plan.end))
    return writing.report(plan.end, plan.schema, plan.flagged)


def _planned(session: SparkSession, ask: WriteDown, target: Target, events: ObjectEvents, most: int) -> SegmentPlan:
    """What rows of before may have does not matter to a target that has none; it is looked at only where it would. One
    that has rows only because an attempt before judged so, and went on, had none.
    """
    barriers = list(events.barriers())
    cut = partial(
        plan_segments, start=ask.start, end=ask.end, schema=ask.schema, mode=ask.mode, barriers=barriers, most=most
    )
    plan = cut()
    if plan.flagged is None or events.first_row < plan.end:
        return plan
    empty = session.read.format("delta").load(target.ref.path).isEmpty()
    newest = None if empty else target.newest()  # looked at behind the rows
    went_on = newest is not None and newest.mark.number == ask.number and newest.mark.end > plan.end
    return cut(empty_until=events.first_row) if empty or went_on else plan


def position_text(position: LogPosition) -> str:
    """A position as people read it."""
    return f"{position.commit}/{position.sequence}"


def _mark(ask: WriteDown, segment: int, end: LogPosition, widest: int = 0) -> ObjectMark:
    return ObjectMark(ask.object_uid, ask.number, segment, ask.start, end, ObjectWrite.WRITE_DOWN, widest=widest)


@dataclass
class _Writing:
    """The segments of a write-down on their way to the target, whose rows have up to `widest` bytes."""

    session: SparkSession
    ask: WriteDown
    target: Target
    events: ObjectEvents
    plan: SegmentPlan
    widest: int
    found: int = 0

    def write(self, segment: Segment) -> str | None:
        """Write it, unless the target has it. Says why only a backfill goes on from it, where that is so."""
        mark = _mark(self.ask, segment.number, segment.end, self.widest)
        if self.target.has(mark):
            self.found += 1
            return None
        if segment.kind is SegmentKind.SCHEMA:
            unfit = unfit_columns(self.target.schema(), segment.schema)
            if unfit is not None:
                return unfit
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

    def report(self, applied: LogPosition, schema: TableSchema, flagged: str | None) -> WriteDownReport:
        """What was done, by this attempt and those before it."""
        events = self.events if applied == self.ask.end else ObjectEvents(self.session, self.ask, end=applied)
        rows = {"inserted": 0, "updated": 0, "deleted": 0}
        for one in self.target.writes():
            if one.mark.number != self.ask.number:
                break
            for name, count in one.rows.items():
                rows[name] += count
        return WriteDownReport(
            applied=applied,
            schema=schema,
            segments=len([one for one in self.plan.segments if one.end <= applied]),
            events=events.rows,
            rows=rows,
            newest_source_timestamp=events.newest,
            flagged=flagged,
            found=self.found,
        )

    def _command(self, segment: Segment) -> Callable[[], None] | None:
        """What writes the segment; None where there is nothing to write."""
        ask = self.ask
        if segment.kind is SegmentKind.TRUNCATE:
            return lambda: truncate(self.session, self.target)
        folding = Folding(ask.name.text, segment.schema, self.events.unchanged, ask.unfit_values)
        if segment.change is not None:
            at, keyed = position_text(segment.start), ask.mode is WriteMode.MERGE
            return change_columns(self.session, self.target, segment.change, folding, at=at, keyed=keyed)
        rows = self.events.between(segment.start, segment.end)
        if self.events.rows == 0 or (len(self.plan.segments) > 1 and rows.isEmpty()):
            return None
        if ask.mode is WriteMode.APPEND_ONLY:
            return lambda: append_rows(self.target, rows, folding)
        if not segment.schema.keys:
            return lambda: merge_bag(self.session, self.target, rows, folding)
        return lambda: merge_rows(self.session, self.target, rows, folding, moves=self.events.moves)

    def _named(self, text: str, segment: Segment) -> TidemarkError | None:
        applied = to_plain(segment.start)
        at = position_text(segment.start)
        unfit = named_unfit_value(text, applied=applied)
        missing = missing_row(text, at, REMEDY, applied=applied) or missing_rows(text, at, REMEDY, applied=applied)
        return unfit or missing
