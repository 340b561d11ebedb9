"""A change stream without Spark: logs that only count versions, and captures as a job would answer them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tidemark.lake.delta_log import DeltaLog
from tidemark.model.change_streams import (
    MICROSECOND,
    CaptureBatch,
    CaptureResult,
    LoadSegment,
    Partition,
    Position,
    WatchedTable,
)
from tidemark.model.streams import TableRef
from tidemark.planning.change_streams.tokens import make_token

START = datetime(2026, 11, 22, 6, 0, tzinfo=UTC)


@dataclass
class Clock:
    """Time that goes on when it is told to."""

    now: datetime = START

    def __call__(self) -> datetime:
        return self.now

    def go(self, by: timedelta = timedelta(minutes=1)) -> datetime:
        self.now += by
        return self.now


@dataclass
class CountingTable:
    """A Delta log of commits without files, committed at the times that are said."""

    root: Path
    name: str = "db.t"
    table_id: str = "table-1"
    columns: Sequence[str] = ("id", "x")
    versions: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        (self.root / "_delta_log").mkdir(parents=True)
        self.recreate(self.table_id, START)

    @property
    def ref(self) -> TableRef:
        return TableRef(self.name, self.root.as_uri(), self.table_id)

    def watched(self, captured: int = 0, columns: tuple[str, ...] | None = None) -> WatchedTable:
        return WatchedTable(self.ref, ("id",), columns, captured)

    def recreate(self, table_id: str, at: datetime, columns: Sequence[str] | None = None) -> None:
        """Another table's first version, or other columns of this one, at the next version."""
        fields = [{"name": c, "type": "long", "nullable": True, "metadata": {}} for c in columns or self.columns]
        schema = json.dumps({"type": "struct", "fields": fields})
        more = {"delta.enableInCommitTimestamps": "true"}
        self.commit(
            at,
            {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["inCommitTimestamp"]}},
            {"metaData": {"id": table_id, "schemaString": schema, "partitionColumns": [], "configuration": more}},
        )

    def commit(self, at: datetime, *actions: object) -> None:
        millis = int(at.timestamp() * 1000)
        lines = [{"commitInfo": {"operation": "WRITE", "inCommitTimestamp": millis}}, *actions]
        path = self.root / "_delta_log" / f"{self.versions:020d}.json"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.versions += 1


def tables(table: TableRef | str) -> DeltaLog:
    return DeltaLog.open(table.path if isinstance(table, TableRef) else table)


def captured(
    batch: CaptureBatch,
    load: Sequence[LoadSegment] = (),
    *,
    until: datetime | None = None,
    closed: Sequence[Partition] = (),
    opened: Sequence[tuple[int, int]] = (),
) -> CaptureResult:
    """The answer of a job that found this load; `closed` end with it, and `opened` are the ranges of their children."""
    last = max((one.start.at for one in load), default=batch.floor)
    boundary = max(last + MICROSECOND, batch.safe_until) if until is None else until
    ended = tuple(replace(one, end=boundary) for one in closed)
    children = tuple(
        Partition(
            make_token(batch.stream.uid, lo, hi, batch.number + 1),
            lo,
            hi,
            tuple(one.token for one in closed if one.lo < hi and lo < one.hi),
            boundary,
            batch=batch.number,
        )
        for lo, hi in opened
    )
    gone = {one.token for one in closed}
    kept = tuple(replace(one, quiet=one.quiet + 1) for one in batch.active if one.token not in gone)
    rows = sum(one.rows for one in load)
    return CaptureResult(batch.number, boundary, len(load), rows, rows, tuple(load), ended, children, kept)


def segment(token: str, at: datetime, rows: int, sequence: str = "000000000000") -> LoadSegment:
    return LoadSegment(token, Position(at, sequence), rows)
