"""A change stream over small tables, captured batch by batch as the store would order it, and its log as rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from tests.engine.lakes import Lake
from tidemark.change_streams.driver.capture import capture_batch
from tidemark.change_streams.model.change_streams import (
    CaptureBatch,
    CaptureResult,
    ChangeStream,
    ChangeStreamOptions,
    Partition,
    TableRange,
    WatchedTable,
)
from tidemark.change_streams.planning.tokens import first_partitions
from tidemark.jobs.workspace import Workspace
from tidemark.model.streams import TableRef

__all__ = ["CREATED", "UID", "Captured", "on_one_table", "table_ref"]

CREATED = datetime(2020, 1, 1, tzinfo=UTC)
UID = "11111111-2222-3333-4444-555555555555"


def table_ref(lake: Lake, name: str = "db.t") -> TableRef:
    return TableRef(name, lake.log.uri, lake.log.state().table_id)


@dataclass
class Captured:
    """A change stream on `tables` and what was captured of it; `stream` and `active` move on with each batch."""

    spark: SparkSession
    workspace: Workspace
    log_path: Path
    tables: list[WatchedTable]
    options: ChangeStreamOptions = field(default_factory=ChangeStreamOptions)
    partitions: int = 1
    split_rows: int = 1_000_000
    merge_rows: int = 0
    number: int = 0
    opened_at: datetime = datetime(2100, 1, 1, tzinfo=UTC)  # no table's clock is ahead of it

    def __post_init__(self) -> None:
        self.until = CREATED
        self.active: tuple[Partition, ...] = first_partitions(UID, CREATED, self.partitions)

    @property
    def stream(self) -> ChangeStream:
        uri = f"file://{self.log_path}"
        return ChangeStream(UID, "s", False, tuple(self.tables), self.options, CREATED, uri, self.until, self.number)

    def batch(self, *ends: int, safe_until: datetime | None = None) -> CaptureBatch:
        """The next batch, up to these versions of the tables."""
        ranges = tuple(
            TableRange(watched, watched.captured, end) for watched, end in zip(self.tables, ends, strict=True)
        )
        return CaptureBatch(
            stream=self.stream,
            number=self.number,
            ranges=ranges,
            floor=self.until - timedelta(microseconds=1),
            safe_until=safe_until or self.until,
            active=self.active,
            split_rows=self.split_rows,
            merge_rows=self.merge_rows,
            opened_at=self.opened_at,
        )

    def run(self, batch: CaptureBatch, **sizes: int) -> CaptureResult:
        return capture_batch(self.spark, batch, self.workspace, **sizes)

    def capture(self, *ends: int, safe_until: datetime | None = None, **sizes: int) -> CaptureResult:
        """Capture up to these versions, and take the result over as the store does."""
        batch = self.batch(*ends, safe_until=safe_until)
        result = self.run(batch, **sizes)
        self.close(batch, result)
        return result

    def close(self, batch: CaptureBatch, result: CaptureResult) -> None:
        self.tables = [replace(taken.watched, captured=taken.end) for taken in batch.ranges]
        self.until = result.published_until
        self.active = (*result.kept, *result.opened)
        self.number += 1

    def rows(self, record_type: str = "data") -> list[Row]:
        """Rows of the log in the order of their positions, times as microseconds."""
        table = self.spark.read.format("delta").load(str(self.log_path)).where(F.col("record_type") == record_type)
        times = [F.unix_micros(name).alias(name) for name in ("commit_timestamp", "raw_commit_timestamp")]
        shown = table.select(*(name for name in table.columns if not name.endswith("commit_timestamp")), *times)
        return shown.orderBy("commit_timestamp", "record_sequence", "mod_number", "token").collect()

    def mods(self) -> list[tuple[Any, ...]]:
        """(version, mod_type, keys, new values, old values), by version, mod_type and keys."""
        rows = sorted(self.rows(), key=lambda row: (row["source_version"], row["mod_type"], row["keys"]))
        values = ("keys", "new_values", "old_values")
        return [(row["source_version"], row["mod_type"], *(json.loads(row[name]) for name in values)) for row in rows]


def on_one_table(
    lake: Lake, workspace: Workspace, *, keys: Sequence[str] = ("k",), columns: Sequence[str] | None = None, **more: Any
) -> Captured:
    """A change stream on the lake's table, from its version now on."""
    watched = WatchedTable(table_ref(lake), tuple(keys), None if columns is None else tuple(columns), lake.version)
    return Captured(lake.spark, workspace, lake.path.parent / "log", [watched], **more)
