"""A client of a lake with one table that is kept clustered, and a clock that tests move."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import Row, SparkSession

from tests.control.kept_objects import drifted
from tests.table_templates import put_table
from tidemark.client import connect
from tidemark.control.store import ControlStore
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.live_files import live_files
from tidemark.model.table_log import AddFile

__all__ = ["World"]

EVENTS = (
    "CREATE TABLE {t} (k BIGINT, day DATE, name STRING, payload STRING) USING delta"
    " TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
)
ROWS_PER_APPEND = 2_000


class World:
    """`lake` is the client. The table `db.events` is empty; each append spans the whole range of `k`."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark, self.root = spark, path / "lake"
        self.path = self.root / "db" / "events"
        self.late = timedelta()
        self.url = f"sqlite:///{path}/control.db"
        self.lake = connect(spark, self.url, lake_root=str(self.root), who="ann", clock=self.now)
        put_table(spark, self.path, EVENTS)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.late

    @property
    def log(self) -> DeltaLog:
        return DeltaLog.open(str(self.path))

    @property
    def files(self) -> tuple[AddFile, ...]:
        return live_files(self.log, self.log.head())

    def run(self, text: str) -> None:
        """A statement on the table, in which it is {t}."""
        self.spark.sql(text.format(t=f"delta.`{self.path}`"))

    def append(self, times: int = 1, *, start: int = 0, step: int = 1, rows: int = ROWS_PER_APPEND) -> None:
        """So many appends of one file each, over keys from `start` on."""
        for _ in range(times):
            self.run(
                f"INSERT INTO {{t}} SELECT /*+ COALESCE(1) */ {start} + id * {step}, DATE'2026-01-01',"
                f" CAST(id AS STRING), repeat(uuid(), 2) FROM range({rows})"
            )

    def one(self, text: str) -> Row:
        (row,) = self.lake.sql(text).collect()
        return row

    def status(self, text: str) -> str:
        found: str = self.one(text).status
        return found

    def ledger(self) -> list[Row]:
        return self.lake.recluster_history("db.events").collect()

    def keys(self) -> list[int]:
        return sorted(row.k for row in self.lake.table("db.events").select("k").collect())

    def drifted(self) -> list[Any]:
        """Differences between the table of all objects and the rows of the clustered tables."""
        store = ControlStore(self.url)
        found = drifted(store)
        store.close()
        return found
