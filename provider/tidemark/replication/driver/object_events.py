"""The part of the event log that belongs to one object in a range of positions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidemark.model.codec import from_json
from tidemark.replication.driver.event_log import OBJECT_COLUMN
from tidemark.replication.model.jobs import ApplyEvents
from tidemark.replication.model.replication import LogPosition, TableSchema
from tidemark.replication.planning.barriers import Barrier, BarrierKind
from tidemark.replication.planning.events import COMES, GOES, TOASTED_KEY, Change

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ROWS", "ObjectEvents", "from_place", "from_position"]

ROWS = (*COMES, *GOES, Change.UPDATE.value, Change.TRUNCATE.value)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ObjectEvents:
    """The object's events [start, end), and what is known of them all.

    `rows`: how many change rows; `newest`: the newest time of the source; `unchanged`: columns that some leave out.
    `moves`: some of these are of keys that moved. `first_row`: where the first of them is, or `end`.
    """

    def __init__(self, session: SparkSession, request: ApplyEvents, *, end: LogPosition | None = None) -> None:
        self.frame = _read(session, request, request.end if end is None else end)
        totals = self.frame.agg(
            F.count_if(F.col("change").isin(*ROWS)).alias("rows"),
            F.unix_micros(F.max("source_timestamp")).alias("newest"),
            F.array_distinct(F.flatten(F.collect_set("unchanged"))).alias("unchanged"),
            F.count_if(_leaves_out_what_moved()).alias("moves"),
            F.count_if(_stops()).alias("stops"),
            F.min(F.when(F.col("change").isin(*ROWS), F.struct("position", "sequence"))).alias("first"),
        ).collect()[0]
        self.rows: int = totals["rows"]
        self.newest = None if totals["newest"] is None else _EPOCH + timedelta(microseconds=totals["newest"])
        self.unchanged = frozenset(totals["unchanged"] or ())
        self.first_row = (
            (request.end if end is None else end) if totals["first"] is None else LogPosition(*totals["first"])
        )
        self.moves, self._stops = bool(totals["moves"]), bool(totals["stops"])

    def between(self, start: LogPosition, end: LogPosition) -> DataFrame:
        """The events [start, end) that change rows."""
        return self.frame.where(from_position(start) & ~from_position(end) & F.col("change").isin(*ROWS))

    def barriers(self) -> Iterator[Barrier]:
        """The places at which they may have to be cut."""
        if self._stops:
            schema = F.when(F.col("change") == Change.SCHEMA.value, F.col("payload"))
            wanted = self.frame.where(_stops()).select("position", "sequence", "change", "problem", schema)
            yield from (_barrier(*row) for row in wanted.collect())


def from_position(position: LogPosition) -> Column:
    """Whether an event is at the position or behind it."""
    return from_place(F.lit(position.commit), F.lit(position.sequence))


def from_place(commit: Column, sequence: Column) -> Column:
    """`from_position` of a position that differs from row to row; NULL where that is."""
    same = (F.col("position") == commit) & (F.col("sequence") >= sequence)
    return (F.col("position") > commit) | same


def _read(session: SparkSession, request: ApplyEvents, end: LogPosition) -> DataFrame:
    of_object = F.col(OBJECT_COLUMN) == request.name.folded
    if request.source_id is not None:
        of_object = of_object & (F.col("object_id") == request.source_id)
    rows = session.read.format("delta").load(request.event_log)
    return rows.where(of_object & from_position(request.start) & ~from_position(end))


def _stops() -> Column:
    return F.col("change").isin(Change.TRUNCATE.value, Change.SCHEMA.value) | F.col("problem").isNotNull()


def _leaves_out_what_moved() -> Column:
    """A key moved, and columns of the row are not in the log."""
    return (F.col("change") == Change.INSERT.value) & F.col("old_key").isNotNull() & (F.size("unchanged") > 0)


def _barrier(commit: str, sequence: int, change: str, problem: str | None, schema: Any) -> Barrier:
    at = LogPosition(commit, sequence)
    if problem == TOASTED_KEY:
        return Barrier(at, BarrierKind.TOASTED_KEY)
    if change == Change.TRUNCATE.value:
        return Barrier(at, BarrierKind.TRUNCATE)
    return Barrier(at, BarrierKind.SCHEMA, schema=from_json(TableSchema, schema))
