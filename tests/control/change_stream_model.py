"""A change stream without Spark: logs that only count versions, and captures as a job would answer them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tidemark.change_streams.model.change_streams import (
    MICROSECOND,
    CaptureBatch,
    CaptureResult,
    ChangeStream,
    ChangeStreamOptions,
    LoadSegment,
    Partition,
    Position,
    WatchedTable,
)
from tidemark.change_streams.planning.tokens import make_token
from tidemark.change_streams.store import partitions
from tidemark.change_streams.worker.capture import close_batch, open_batch
from tidemark.change_streams.worker.definitions import create_change_stream, get_change_stream
from tidemark.control.store import ControlStore
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import TableRef
from tidemark.streams.worker.sources import Tables

EXACT = {"delta.enableInCommitTimestamps": "true"}
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
        self.begin_anew(self.table_id, START)

    @property
    def ref(self) -> TableRef:
        return TableRef(self.name, self.root.as_uri(), self.table_id)

    def watched(self, captured: int = 0, columns: tuple[str, ...] | None = None) -> WatchedTable:
        return WatchedTable(self.ref, ("id",), columns, captured)

    def begin_anew(self, table_id: str, at: datetime) -> None:
        """Whatever lay there is gone, and this is version 0."""
        if self.root.exists():
            self.remove()
        (self.root / "_delta_log").mkdir(parents=True)
        self.versions = 0
        self.define(table_id, at, self.columns)

    def remove(self) -> None:
        shutil.rmtree(self.root)

    def lose(self, version: int) -> None:
        (self.root / "_delta_log" / f"{version:020d}.json").unlink()

    def define(self, table_id: str, at: datetime, columns: Sequence[str], **types: str) -> None:
        """The next version says what table this is; `types` of columns that are not whole numbers."""
        fields = [{"name": name, "type": types.get(name, "long"), "nullable": True, "metadata": {}} for name in columns]
        schema = json.dumps({"type": "struct", "fields": fields})
        self.commit(
            at,
            {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["inCommitTimestamp"]}},
            {"metaData": {"id": table_id, "schemaString": schema, "partitionColumns": [], "configuration": EXACT}},
        )

    def commit(self, at: datetime, *actions: object) -> None:
        millis = int(at.timestamp() * 1000)
        lines = [{"commitInfo": {"operation": "WRITE", "inCommitTimestamp": millis}}, *actions]
        path = self.root / "_delta_log" / f"{self.versions:020d}.json"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.versions += 1


def tables(table: TableRef | str) -> DeltaLog:
    return DeltaLog.open(table.path if isinstance(table, TableRef) else table)


@dataclass
class ChangeStreamWorld:
    """A change stream `s` over one table of its own, by a clock of its own."""

    store: ControlStore
    root: Path
    clock: Clock = field(default_factory=Clock)
    tables: Tables = tables
    run: str | None = None  # key of the task that captures

    def __post_init__(self) -> None:
        self.store.clock = self.clock
        self.table = self.new_table("t")
        create_change_stream(
            self.store,
            name="s",
            tables=[self.table.watched()],
            everything=False,
            options=ChangeStreamOptions(),
            log_path="file:///log",
            initial_partitions=2,
        )

    def new_table(self, name: str) -> CountingTable:
        return CountingTable(self.root / name, f"db.{name}", f"id of {name}")

    @property
    def stream(self) -> ChangeStream:
        return get_change_stream(self.store, "s")

    def active(self) -> tuple[Partition, ...]:
        uid = self.stream.uid
        return self.store.read(lambda connection: partitions.active(connection, uid))

    def opened(self, **how: Any) -> Any:
        return open_batch(self.store, "s", tables=self.tables, **{"run": self.run, **how})

    def close(self, batch: CaptureBatch, *load: LoadSegment, **how: Any) -> ChangeStream:
        return close_batch(self.store, batch, captured(batch, load, **how), run=self.run)

    def batch(self, *load: LoadSegment, **how: Any) -> ChangeStream:
        """A commit, and its capture."""
        self.table.commit(self.clock.go())
        self.clock.go()
        return self.close(self.opened(), *load, **how)


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
