"""Random queries, kept over random histories: kept rows are Spark's own answer at the pinned versions."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.engine.statements import delivering, statement
from tests.properties.kept_queries import random_query
from tests.properties.test_view_histories import History, dropped, made
from tests.tiers import some
from tidemark.delivery.driver.exactly_once import write_statement
from tidemark.jobs.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog
from tidemark.materialized.driver.fresh_rows import fresh_rows, kept_rows
from tidemark.materialized.driver.job_resolve_query import resolve_query_in
from tidemark.materialized.model.definitions import FloatSums, KeptKind
from tidemark.materialized.model.jobs import KeptTable, Resolved, ResolveRequest
from tidemark.materialized.model.shapes import KeptShape, Shape
from tidemark.model.statements import Evidence, RefreshHow, RefreshWrite, WriteAs
from tidemark.model.streams import BaseWindow, StreamMode, StreamWindow, TableRef, WindowKind
from tidemark.streams.driver.pinned_streams import PinnedStreams
from tidemark.streams.driver.refresh import prepare_refresh

pytestmark = pytest.mark.spark

QUERIES_OF_A_LAKE = 20
COMMITS = 3
NOW_RUN = list(range(40))
RUNS = list(range(1000))
NOW = datetime(2026, 3, 29, tzinfo=UTC)

Lakes: TypeAlias = "Callable[[int], list[History]]"
Ends = Sequence[int]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace(tmp_path_factory.mktemp("lake").as_uri(), "test") as room:
        yield room


@pytest.fixture(scope="module")
def lakes(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lakes]:
    """Tables with histories, by number; the last is kept, for the queries that follow."""
    kept: dict[tuple[int, int], list[History]] = {}

    def lake(number: int) -> list[History]:
        if (number, 0) not in kept:
            dropped(spark, kept)
            kept[number, 0] = made(spark, tmp_path_factory.mktemp("kept"), random.Random(number), number, COMMITS)
        return kept[number, 0]

    yield lake
    dropped(spark, kept)


@dataclass
class Kept:
    """A kept query: its table, and the version at which it answers for each of its bases."""

    spark: SparkSession
    workspace: Workspace
    lake: Sequence[History]
    text: str
    resolved: Resolved
    number: int = 0
    evidence: Evidence | None = None

    @property
    def shape(self) -> KeptShape:
        return self.resolved.shape

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

    def fresh(self, window: StreamWindow) -> list[Any]:
        return sorted_rows(fresh_rows(self.spark, self.shape, self.path, self.version, window, self.workspace))

    def stored(self) -> list[Any]:
        return sorted_rows(self.spark.read.format("delta").load(self.path))

    def answer(self, ends: Ends) -> list[Any]:
        """Spark's own answer."""
        text = self.text
        for table, end in zip(self.lake, ends, strict=True):
            text = text.replace(table.name, f"delta.`{table.path}@v{end}`")
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


def make(
    spark: SparkSession, workspace: Workspace, lake: Sequence[History], seed: int, home: Path, kind: KeptKind
) -> Kept:
    chance = random.Random(seed)
    text = random_query(chance, [table.name for table in lake])
    paths = {table.name: table.ref.path for table in lake if chance.random() < 0.5}
    request = ResolveRequest(
        name=f"kept_{seed}",
        text=text,
        kind=kind,
        tables=paths,
        float_sums=chance.choice(list(FloatSums)),
        kept=KeptTable("v", str(home / "kept")),
    )
    return Kept(spark, workspace, lake, text, resolve_query_in(spark, request))


@pytest.mark.parametrize("seed", some(RUNS, NOW_RUN))
def test_kept_rows_are_the_answer_of_the_query(
    seed: int, spark: SparkSession, workspace: Workspace, lakes: Lakes, tmp_path: Path
) -> None:
    lake = lakes(seed // QUERIES_OF_A_LAKE)
    chance = random.Random(seed)
    kind = KeptKind.DYNAMIC_TABLE if seed % 4 == 3 else KeptKind.MATERIALIZED_VIEW
    kept = make(spark, workspace, lake, seed, tmp_path, kind)
    said = f"{kept.shape.shape} {kept.shape.why} {kept.text}"
    points = [sorted(chance.choices(range(1, table.version + 1), k=3)) for table in lake]
    first, second, last = ([point[n] for point in points] for n in range(3))
    kept.refresh(kept.window(first, first, initial=True), RefreshHow.CHANGES)
    assert same(kept.rows(), kept.answer(first)), said
    assert same(kept.fresh(kept.window(first, last)), kept.answer(last)), f"fresh {said}"
    plain = kept.shape.shape is Shape.PLAIN
    how = RefreshHow.WHOLE if plain else RefreshHow.CHANGES
    kept.refresh(kept.window(first, second), how)
    assert same(kept.rows(), kept.answer(second)), said
    assert kept.refresh(kept.window(first, second), how, again=True).found
    how = RefreshHow.WHOLE if plain else chance.choice([RefreshHow.CHANGES, RefreshHow.COMPACTED])
    kept.refresh(kept.window(second, last), how)
    assert same(kept.rows(), kept.answer(last)), said
    incremental = kept.stored()
    kept.refresh(kept.window(second, last), RefreshHow.WHOLE)
    assert same(kept.rows(), kept.answer(last)), f"in full {said}"
    if kept.shape.shape is Shape.ROWS:
        assert same(incremental, kept.stored()), f"ids {said}"
