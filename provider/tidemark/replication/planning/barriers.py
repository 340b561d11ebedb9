"""The places at which a range of an object's events is cut, so that each part is one write to its target.

Between two barriers the order of events of several keys does not count. A barrier is a TRUNCATE and a change of the
schema. A moved key is none, as its row is followed through its keys. The cuts depend on the events alone, so every
attempt gives the same parts the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from tidemark.replication.model.replication import LogPosition, TableSchema, WriteMode
from tidemark.replication.planning.types import SchemaChange, change_of

__all__ = ["Barrier", "BarrierKind", "Segment", "SegmentKind", "SegmentPlan", "after", "plan_segments"]


class BarrierKind(StrEnum):
    """The kind of the event at a barrier."""

    TRUNCATE = "truncate"
    SCHEMA = "schema"
    TOASTED_KEY = "toasted_key"  # whose row it is cannot be known


@dataclass(frozen=True)
class Barrier:
    """An event that may cut. `at`: the event. `schema`: of a SCHEMA the new one."""

    at: LogPosition
    kind: BarrierKind
    schema: TableSchema | None = None


class SegmentKind(StrEnum):
    """The kind of work for a segment."""

    ROWS = "rows"  # the events are folded and merged, or appended
    TRUNCATE = "truncate"  # every row goes
    SCHEMA = "schema"  # the target gets the new columns, and its rows their values


@dataclass(frozen=True)
class Segment:
    """Events [start, end), one write. `number` from 1. `schema`: that of its rows; of SCHEMA `change.new`."""

    number: int
    kind: SegmentKind
    start: LogPosition
    end: LogPosition
    schema: TableSchema
    change: SchemaChange | None = None

    @property
    def schema_before(self) -> TableSchema:
        """The schema as of `start`."""
        return self.schema if self.change is None else self.change.old


@dataclass(frozen=True)
class SegmentPlan:
    """The segments of [start, `end`), which is the whole range unless something stops it. Then `needs_backfill` says
    why only a backfill continues, or `toasted_key` that the row of the event at `end` is not known. `schema`: as of
    `end`.
    """

    segments: tuple[Segment, ...]
    end: LogPosition
    schema: TableSchema
    needs_backfill: str | None = None
    toasted_key: bool = False


def after(position: LogPosition) -> LogPosition:
    """Behind that one event."""
    return replace(position, sequence=position.sequence + 1)


def plan_segments(
    *,
    start: LogPosition,
    end: LogPosition,
    schema: TableSchema,
    mode: WriteMode,
    barriers: Iterable[Barrier],
    most: int | None = None,
    empty_until: LogPosition | None = None,
) -> SegmentPlan:
    """Cut [start, end), into the first `most` segments. `schema`: as of `start`. `empty_until`: the place at which a
    target without rows gets its first row; None for a target that has one.

    In an append-only target only schemas cut, as all else is a row.
    """
    plan = _whole_plan(start, end, schema, mode, barriers, empty_until)
    if most is None or len(plan.segments) <= most:
        return plan
    following = plan.segments[most]
    return SegmentPlan(plan.segments[:most], following.start, following.schema_before)


def _whole_plan(
    start: LogPosition,
    end: LogPosition,
    schema: TableSchema,
    mode: WriteMode,
    barriers: Iterable[Barrier],
    empty_until: LogPosition | None,
) -> SegmentPlan:
    cutter = _Cutter(start, schema, keyed=mode is WriteMode.MERGE)
    for barrier in sorted(barriers, key=lambda one: one.at):
        if barrier.kind is BarrierKind.TOASTED_KEY:
            return cutter.plan(barrier.at, toasted_key=True)
        if barrier.kind is BarrierKind.SCHEMA and barrier.schema is not None:
            empty = empty_until is not None and barrier.at <= empty_until
            change = change_of(cutter.schema, barrier.schema, keyed=cutter.keyed, empty=empty)
            if change.needs_backfill is not None:
                return cutter.plan(barrier.at, needs_backfill=change.needs_backfill)
            cutter.turn(barrier.at, change)
        elif cutter.keyed and barrier.kind is BarrierKind.TRUNCATE:
            cutter.cut(barrier.at)
            cutter.add(SegmentKind.TRUNCATE, after(barrier.at))
    return cutter.plan(end)


class _Cutter:
    """Segments so far; the next begins at `start`."""

    def __init__(self, start: LogPosition, schema: TableSchema, *, keyed: bool) -> None:
        self.start = start
        self.schema = schema
        self.keyed = keyed
        self._segments: list[Segment] = []

    def add(self, kind: SegmentKind, end: LogPosition, change: SchemaChange | None = None) -> None:
        """A segment from where the last one ended."""
        number = len(self._segments) + 1
        self._segments.append(Segment(number, kind, self.start, end, self.schema, change))
        self.start = end

    def cut(self, at: LogPosition) -> None:
        """End the rows before `at`, if there may be any."""
        if at > self.start:
            self.add(SegmentKind.ROWS, at)

    def turn(self, at: LogPosition, change: SchemaChange) -> None:
        """To another schema; one that changes nothing for the target cuts nothing."""
        if change.is_something:
            self.cut(at)
        self.schema = change.new
        if change.is_something:
            self.add(SegmentKind.SCHEMA, after(at), change)

    def plan(self, end: LogPosition, *, needs_backfill: str | None = None, toasted_key: bool = False) -> SegmentPlan:
        """All of it, up to `end`."""
        self.cut(end)
        return SegmentPlan(tuple(self._segments), end, self.schema, needs_backfill, toasted_key)
