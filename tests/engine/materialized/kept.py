"""A kept query over pinned versions of its tables, refreshed as a job does it, and the comparison of its rows."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from tests.engine.statements import delivering, statement
from tidemark.delivery.driver.exactly_once import write_statement
from tidemark.jobs.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog
from tidemark.materialized.driver.fresh_rows import fresh_from, fresh_rows, kept_rows
from tidemark.materialized.model.jobs import Resolved
from tidemark.materialized.model.shapes import KeptShape, Shape
from tidemark.model.statements import Evidence, RefreshHow, RefreshWrite, WriteAs
from tidemark.model.streams import BaseWindow, StreamMode, StreamWindow, TableRef, WindowKind
from tidemark.streams.driver.pinned_streams import PinnedStreams
from tidemark.streams.driver.refresh import prepare_refresh, whole_rows

__all__ = ["BaseTable", "Ends", "Kept", "same", "sorted_rows"]

NOW = datetime(2026, 3, 29, tzinfo=UTC)
Ends = Sequence[int]  # a version of each table


class BaseTable(Protocol):
    """A table of a lake, by its name in queries."""

    @property
    def name(self) -> str: ...

    @property
    def ref(self) -> TableRef: ...


@dataclass
class Kept:
    """A kept query: its table, and the version at which it answers for each of its bases."""

    spark: SparkSession
    workspace: Workspace
    lake: Sequence[BaseTable]
    text: str
    resolved: Resolved
    number: int = 0
    evidence: Evidence | None = None

    @property
    def shape(self) -> KeptShape:
        return self.resolved.shape

    @property
    def said(self) -> str:
        return f"{self.shape.shape} {self.shape.why} {self.text}"

    @property
    def path(self) -> str:
        assert self.resolved.kept is not None
        return self.resolved.kept.path

    def window(self, starts: Ends, ends: Ends, *, initial: bool = False) -> StreamWindow:
        named = {table.ref.path: n for n, table in enumerate(self.lake)}
        at = [named[base.path] for base in self.resolved.bases]
        bases = tuple(BaseWindow(b, starts[n], ends[n]) for b, n in zip(self.resolved.bases, at, strict=True))
        return StreamWindow(
            stream_uid="uid-1",
            stream_name="hidden",
            source=TableRef("v", "", self.shape.followed.digest),
            mode=StreamMode.STANDARD,
            kind=WindowKind.INITIAL_ROWS if initial else WindowKind.CHANGES,
            start=sum(base.start for base in bases),
            end=sum(base.end for base in bases),
            view=self.shape.followed,
            view_bases=bases,
            read_at=NOW,
        )

    def refresh(self, window: StreamWindow, how: RefreshHow, *, again: bool = False) -> Evidence:
        """One refresh as a job makes it; `again`: a second attempt of the last one."""
        self.number += not again
        write = RefreshWrite(how, rows_by_id=self.shape.shape is Shape.ROWS, sums=self.shape.sums)
        known = statement(
            self.path,
            number=self.number,
            write_as=WriteAs.REFRESH,
            source="hidden",
            refresh=write,
            base=0 if again else None,
        )
        shared = delivering(window)
        streams = PinnedStreams(self.spark, (window,), self.workspace)
        prepared = prepare_refresh(self.spark, known, streams, None)
        try:
            found = write_statement(self.spark, shared, known, prepared.run)
        finally:
            prepared.close()
        self.evidence = found
        return found

    @property
    def version(self) -> int:
        return DeltaLog.open(self.path).head()

    def rows(self) -> list[Any]:
        return sorted_rows(kept_rows(self.spark, self.shape, self.path, self.version))

    def unwritten(self, starts: Ends, ends: Ends) -> list[Any]:
        """Fresh rows from what a refresh would have written at the start."""
        asked = RefreshWrite(RefreshHow.WHOLE, rows_by_id=self.shape.shape is Shape.ROWS, sums=self.shape.sums)
        kept = whole_rows(self.spark, self.window(starts, starts), asked, None)
        return sorted_rows(fresh_from(self.spark, self.shape, kept, self.window(starts, ends), self.workspace))

    def fresh(self, window: StreamWindow) -> list[Any]:
        return sorted_rows(fresh_rows(self.spark, self.shape, self.path, self.version, window, self.workspace))

    def stored(self) -> list[Any]:
        return sorted_rows(self.spark.read.format("delta").load(self.path))

    def answer(self, ends: Ends) -> list[Any]:
        """Spark's own answer."""
        text = self.text
        for table, end in zip(self.lake, ends, strict=True):
            text = re.sub(rf"\b{table.name}\b", f"delta.`{table.ref.path}@v{end}`", text)
        return sorted_rows(self.spark.sql(text))


def sorted_rows(frame: DataFrame) -> list[Any]:
    return sorted((tuple(row) for row in frame.collect()), key=lambda row: [key(value) for value in row])


def key(value: Any) -> str:
    """Places by which floats that differ in their last digits are next to one another."""
    return f"{value:.6e}" if isinstance(value, float) else repr(value)


def same(found: list[Any], expected: list[Any]) -> bool:
    if len(found) != len(expected):
        return False
    pairs = [(a, b) for one, other in zip(found, expected, strict=True) for a, b in zip(one, other, strict=True)]
    return all(alike(a, b) for a, b in pairs)


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return bool(one == other)
