"""A small table with row tracking and the streams' view of its windows, for tests of rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tests.table_templates import put_table
from tidemark.changes.driver.plan import plan_changes
from tidemark.changes.driver.rows import read_changes
from tidemark.changes.planning.sets.plan import ChangePlan
from tidemark.jobs.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import ACTION, ROW_ID, StreamMode

__all__ = ["Lake"]


@dataclass
class Lake:
    """One table at `path`; `t` in SQL text stands for it."""

    spark: SparkSession
    path: Path
    workspace: Workspace

    @property
    def name(self) -> str:
        return "delta.`" + str(self.path).replace("`", "``") + "`"

    @property
    def log(self) -> DeltaLog:
        return DeltaLog.open(str(self.path))

    @property
    def version(self) -> int:
        return self.log.head()

    def create(self, columns: str = "k INT, v STRING", partitioned: str = "", **properties: str) -> Lake:
        given = {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true", **_dotted(properties)}
        listed = ", ".join(f"'{name}' = '{value}'" for name, value in given.items())
        made = f"CREATE TABLE {{t}} ({columns}) USING delta {partitioned} TBLPROPERTIES ({listed})"
        put_table(self.spark, self.path, made)
        return self

    def sql(self, *texts: str) -> int:
        """Run statements in which {t} is the table; returns the version after them."""
        for text in texts:
            self.spark.sql(text.replace("{t}", self.name))
        return self.version

    def plan(self, start: int, end: int | None = None, mode: StreamMode = StreamMode.STANDARD) -> ChangePlan:
        return plan_changes(self.log, start, self.version if end is None else end, mode)

    def frame(self, start: int, end: int | None = None, mode: StreamMode = StreamMode.STANDARD) -> DataFrame:
        return read_changes(self.spark, self.log, self.plan(start, end, mode), self.workspace)

    def changes(
        self, start: int, end: int | None = None, mode: StreamMode = StreamMode.STANDARD
    ) -> list[tuple[Any, ...]]:
        """(action, is update, *columns), sorted."""
        frame = self.frame(start, end, mode)
        return sorted(((row[-3], row[-2], *row[:-3]) for row in map(tuple, frame.collect())), key=repr)

    def ids(self, start: int, end: int | None = None) -> dict[tuple[str, Any], str]:
        """(action, first column) → METADATA$ROW_ID."""
        frame = self.frame(start, end)
        return {(row[ACTION], row[0]): row[ROW_ID] for row in frame.collect()}

    def appended(self, start: int, end: int | None = None) -> list[tuple[Any, ...]]:
        return self.changes(start, end, StreamMode.APPEND_ONLY)


def _dotted(properties: dict[str, str]) -> dict[str, str]:
    return {name.replace("__", "."): value for name, value in properties.items()}
