"""A table of a real PostgreSQL with its event log and its target, replicated in this process."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.databases.postgresql.captured import SourceWorld
from tests.engine.replication.capturing import CaptureWorld
from tests.engine.replication.event_histories import STORE
from tests.postgresql import PostgresServer
from tidemark.jobs.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.source_address import SourceKind
from tidemark.model.streams import TableRef
from tidemark.replication.driver.apply import apply_events
from tidemark.replication.driver.backfill import backfill_object
from tidemark.replication.model.jobs import ApplyEvents, ApplyReport, BackfillObject, BackfillReport
from tidemark.replication.model.replication import (
    BackfillProgress,
    InvalidValues,
    LogPosition,
    ObjectName,
    ObjectState,
    ReplicatedObject,
    TableSchema,
    WriteMode,
)
from tidemark.replication.sources.postgresql.catalog import columns_of
from tidemark.replication.sources.postgresql.connection import connect

__all__ = ["ReplicatedWorld"]


@dataclass
class ReplicatedWorld:
    """`sql` makes the table; `applied`, `schema` and `number` are what a store would know of it."""

    spark: SparkSession
    server: PostgresServer
    home: Path
    sql: tuple[str, ...]
    table: str = "t"
    keys: tuple[str, ...] = ("id",)
    mode: WriteMode = WriteMode.MERGE
    number: int = 0
    applied: LogPosition | None = None
    schema: TableSchema | None = None
    left: list[BackfillProgress] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.source = SourceWorld(self.server, "replicated")
        self.source.sql(*self.sql)
        self.source.replicate(self.table, keys=self.keys)
        self.capturing = CaptureWorld(self.spark, self.source, self.home)

    def close(self) -> None:
        self.source.close()

    @property
    def oid(self) -> str:
        (oid,) = self.source.captured
        return oid

    @property
    def target(self) -> TableRef:
        path = self.home / "target"
        known = (path / "_delta_log").exists()
        return TableRef("lake.t", str(path), DeltaLog.open(str(path)).state().table_id if known else "")

    @property
    def log(self) -> DeltaLog:
        return DeltaLog.open(str(self.home / "target"))

    def catalog(self) -> TableSchema:
        with connect(self.source.address) as connection:
            return columns_of(connection, int(self.oid))

    def backfill_ask(self, **more: Any) -> BackfillObject:
        """The next one; `catch_up` is what the target has."""
        self.number += 1
        schema = self.catalog() if self.schema is None else self.schema
        name = ObjectName("public", self.table)
        uid = self.capturing.request.replication_uid
        one = ReplicatedObject("o", uid, name, self.oid, schema, self.mode, self.target, ObjectState.ACTIVE)
        request = BackfillObject(
            replication_uid=uid,
            stream="shop",
            object=one,
            kind=SourceKind.POSTGRESQL,
            number=self.number,
            event_log=self.capturing.request.event_log,
            system_id=self.capturing.request.system_id,
            invalid_values=InvalidValues.FAIL,
            expected_rows=100,
            partitions=3,
            batches=self.capturing.request.batches,
            catch_up=self.applied,
        )
        return replace(request, **more)

    def backfill(self, request: BackfillObject | None = None, **more: Any) -> BackfillReport:
        request = self.backfill_ask() if request is None else request
        given = {"address": self.source.address, "patience": timedelta(seconds=20), **more}
        with Workspace(f"file://{self.home}/_tidemark", "backfill") as workspace:
            report = backfill_object(
                self.spark,
                STORE,
                request,
                workspace=workspace,
                now=lambda: datetime.now(UTC),
                leave=self.left.append,
                **given,
            )
        self.applied, self.schema = report.applied, report.schema
        return report

    def capture(self) -> LogPosition:
        report = self.capturing.capture()
        self.capturing.store(report)
        return report.captured

    def apply_ask(self, end: LogPosition, **more: Any) -> ApplyEvents:
        assert self.applied is not None
        assert self.schema is not None
        self.number += 1
        request = ApplyEvents(
            replication_uid=self.capturing.request.replication_uid,
            object_uid="o",
            stream="shop",
            name=ObjectName("public", self.table),
            number=self.number,
            start=self.applied,
            end=end,
            schema=self.schema,
            mode=self.mode,
            target=self.target,
            event_log=self.capturing.request.event_log,
            invalid_values=InvalidValues.FAIL,
            batches=self.capturing.request.batches,
            source_id=self.oid,
        )
        return replace(request, **more)

    def apply(self, end: LogPosition | None = None) -> ApplyReport:
        """Up to `end`, or to what is captured first."""
        report = apply_events(self.spark, STORE, self.apply_ask(self.capture() if end is None else end))
        self.applied, self.schema = report.applied, report.schema
        return report

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        """Of the target: the source's columns now, unless others are named."""
        frame = self.spark.read.format("delta").load(str(self.home / "target"))
        names = columns or tuple(column.name for column in self.catalog().columns)
        picked = frame.select(*("`" + name.replace("`", "``") + "`" for name in names))
        return sorted(map(tuple, picked.collect()), key=repr)

    def source_rows(self, text: str = "SELECT * FROM t") -> list[tuple[Any, ...]]:
        return sorted(self.source.sql(text), key=repr)
