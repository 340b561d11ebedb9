"""A few small tables in Spark's catalog, views on them, and what streams on those show of a window."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tidemark.changes.driver.views.catalog import resolve_view
from tidemark.changes.driver.views.plan import plan_view_changes
from tidemark.changes.driver.views.read import read_view_changes, read_view_rows
from tidemark.changes.planning.views.plan import ViewPlan
from tidemark.jobs.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import ACTION, IS_UPDATE, ROW_ID, BaseWindow, StreamMode, TableRef
from tidemark.model.views import ViewQuery

__all__ = ["NOW", "ViewLake"]

NOW = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
PROPERTIES = "'delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = 'true'"


@dataclass
class ViewLake:
    """A schema of its own, `{db}` in SQL text. A window goes from the last `mark` to now."""

    spark: SparkSession
    home: Path
    workspace: Workspace
    db: str
    marked: dict[str, int] = field(default_factory=dict)

    def table(self, name: str, columns: str, rows: str = "", *, properties: str = PROPERTIES) -> None:
        path = self.home / name
        self.sql(f"CREATE TABLE {{db}}.{name} ({columns}) USING delta LOCATION '{path}' TBLPROPERTIES ({properties})")
        if rows:
            self.sql(f"INSERT INTO {{db}}.{name} VALUES {rows}")

    def view(self, name: str, text: str, *, beyond: bool = False) -> ViewQuery:
        self.sql(f"CREATE OR REPLACE VIEW {{db}}.{name} AS {text}")
        return self.resolved(name, beyond=beyond)

    def resolved(self, name: str, *, beyond: bool = False) -> ViewQuery:
        return resolve_view(self.spark, f"{self.db}.{name}", beyond_snowflake=beyond)

    def sql(self, *texts: str) -> None:
        for text in texts:
            self.spark.sql(text.replace("{db}", self.db))

    def mark(self) -> None:
        """Windows start here."""
        self.marked = {path.name: DeltaLog.open(str(path)).head() for path in self.home.iterdir() if path.is_dir()}

    def windows(self, query: ViewQuery) -> list[BaseWindow]:
        return [self.window(base.rpartition(".")[2].strip("`")) for base in query.bases]

    def window(self, name: str) -> BaseWindow:
        log = DeltaLog.open(str(self.home / name))
        return BaseWindow(TableRef(name, log.uri, log.state().table_id), self.marked[name], log.head())

    def frame(self, query: ViewQuery, mode: StreamMode = StreamMode.STANDARD, now: datetime = NOW) -> DataFrame:
        windows = self.windows(query)
        return read_view_changes(self.spark, query, windows, mode, now, self.workspace, reader="s").rows

    def changes(self, query: ViewQuery, mode: StreamMode = StreamMode.STANDARD) -> list[tuple[Any, ...]]:
        """(action, is update, *columns), sorted."""
        rows = map(tuple, self.frame(query, mode).collect())
        return sorted(((row[-3], row[-2], *row[:-3]) for row in rows), key=repr)

    def appended(self, query: ViewQuery) -> list[tuple[Any, ...]]:
        return self.changes(query, StreamMode.APPEND_ONLY)

    def ids(self, query: ViewQuery) -> dict[tuple[Any, ...], str]:
        """(action, *columns) → METADATA$ROW_ID."""
        rows = self.frame(query).collect()
        names = [name for name in query_columns(rows) if name not in (ACTION, IS_UPDATE, ROW_ID)]
        return {(row[ACTION], *(row[name] for name in names)): row[ROW_ID] for row in rows}

    def rows(self, query: ViewQuery) -> DataFrame:
        return read_view_rows(self.spark, query, self.windows(query), NOW, reader="s")

    def plan(self, query: ViewQuery, mode: StreamMode = StreamMode.STANDARD) -> ViewPlan:
        return plan_view_changes(query, self.windows(query), mode, reader="s")


def query_columns(rows: list[Any]) -> list[str]:
    return list(rows[0].__fields__) if rows else []
