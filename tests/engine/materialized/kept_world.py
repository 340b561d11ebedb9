"""A lake with a control store, in which queries are kept by transactions of their hidden streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.engine.materialized.kept import sorted_rows
from tidemark.control.store import ControlStore
from tidemark.jobs.run import run
from tidemark.lake.delta_log import DeltaLog
from tidemark.materialized.driver.fresh_rows import kept_rows
from tidemark.materialized.model.definitions import KeptKind
from tidemark.materialized.model.jobs import RESOLVE_QUERY, KeptTable, Resolved, ResolveRequest
from tidemark.materialized.model.shapes import Shape
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.statements import PlannedWrite, RefreshHow, RefreshWrite, TransactionKey, WriteAs
from tidemark.model.streams import BaseOffset, StreamMode, TableRef
from tidemark.streams.worker.consume import consume
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.outcomes import Consumed
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.streams import create_stream

__all__ = ["KeptWorld"]

TRACKED = "TBLPROPERTIES ('delta.enableRowTracking' = 'true')"


@dataclass
class KeptWorld:
    """Tables below `home`, by their names there."""

    spark: SparkSession
    home: Path
    after: Callable[[JobSpec], None] = lambda _: None  # runs when a job is done, and may raise
    kept: dict[str, Resolved] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.store = ControlStore(f"sqlite:///{self.home}/tidemark.db")
        self.runtime = Runtime(self.store, run=self._job, paths=JobPaths(f"{self.home}/work", f"{self.home}/jobs"))

    def _job(self, spec: JobSpec) -> JobResult:
        found = run(self.spark, spec, say=lambda _: None)
        self.after(spec)
        return found

    def path(self, name: str) -> str:
        return (self.home / name).as_uri()

    def table(self, name: str, columns: str, *rows: str) -> None:
        self.spark.sql(f"CREATE TABLE delta.`{self.path(name)}` ({columns}) USING delta {TRACKED}")
        for values in rows:
            self.sql(f"INSERT INTO {{{name}}} VALUES {values}")

    def sql(self, text: str) -> None:
        names = {part.name: f"delta.`{self.path(part.name)}`" for part in self.home.iterdir() if part.is_dir()}
        self.spark.sql(text.format(**names))

    def resolve(self, text: str, *tables: str, kind: KeptKind = KeptKind.MATERIALIZED_VIEW, **more: Any) -> Resolved:
        """The answer of the job. Raises its errors."""
        paths: Mapping[str, str] = {name: self.path(name) for name in tables}
        request = ResolveRequest(**{"name": "v", "text": text, "kind": kind, "tables": paths, **more})
        return self.runtime.run_job(RESOLVE_QUERY, request, key=None)

    def create(
        self, name: str, text: str, *tables: str, kind: KeptKind = KeptKind.MATERIALIZED_VIEW, cluster_by: str = ""
    ) -> Resolved:
        """The query with a table and a hidden stream."""
        clustered = tuple(filter(None, [cluster_by]))
        wanted = KeptTable(name, self.path(f"kept_{name}"), clustered)
        found = self.resolve(text, *tables, kind=kind, kept=wanted, name=name)
        offsets = [BaseOffset(base, DeltaLog.open(base.path).head()) for base in found.bases]
        create_stream(
            self.store,
            name=f"{name}__hidden",
            source=TableRef(name, "", found.shape.followed.digest),
            mode=StreamMode.STANDARD,
            at_version=sum(offset.version for offset in offsets),
            who="a test",
            initial_rows=True,
            view=found.shape.followed,
            view_bases=offsets,
        )
        self.kept[name] = found
        return found

    def refresh(self, name: str, run_id: str, how: RefreshHow = RefreshHow.CHANGES) -> Consumed:
        found = self.kept[name]
        assert found.kept is not None
        asked = RefreshWrite(how, rows_by_id=found.shape.shape is Shape.ROWS, sums=found.shape.sums)
        write = PlannedWrite(WriteAs.REFRESH, target=found.kept.path, source=f"{name}__hidden", refresh=asked)
        key = TransactionKey("views", run_id, name)
        return consume(self.runtime, key=key, streams=[f"{name}__hidden"], writes=[write], owner="a test")

    def version(self, name: str) -> int:
        kept = self.kept[name].kept
        assert kept is not None
        return DeltaLog.open(kept.path).head()

    def rows(self, name: str) -> list[Any]:
        found = self.kept[name]
        assert found.kept is not None
        return sorted_rows(kept_rows(self.spark, found.shape, found.kept.path, self.version(name)))
