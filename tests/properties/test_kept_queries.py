"""Random queries, kept over random histories: kept rows are Spark's own answer at the pinned versions."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest
from pyspark.sql import SparkSession

from tests.engine.materialized.kept import Ends, Kept, same
from tests.properties.kept_queries import random_query
from tests.properties.test_view_histories import History, dropped, made
from tests.tiers import some
from tidemark.jobs.workspace import Workspace
from tidemark.materialized.driver.job_resolve_query import resolve_query_in
from tidemark.materialized.model.definitions import FloatSums, KeptKind
from tidemark.materialized.model.jobs import KeptTable, ResolveRequest
from tidemark.materialized.model.shapes import Shape
from tidemark.model.statements import RefreshHow

pytestmark = pytest.mark.spark

QUERIES_OF_A_LAKE = 20
COMMITS = 3
PROGRAMS = 6
SOAK = int(os.environ.get("TIDEMARK_SOAK_PROGRAMS", "200"))  # `make soak` asks for 1,000

Lakes: TypeAlias = "Callable[[int], list[History]]"


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


def make(
    spark: SparkSession, workspace: Workspace, lake: Sequence[History], seed: int, table: KeptTable | None
) -> Kept:
    chance = random.Random(seed)
    text = random_query(chance, [table.name for table in lake])
    request = ResolveRequest(
        name=f"kept_{seed}",
        text=text,
        kind=KeptKind.DYNAMIC_TABLE if seed % 4 == 3 else KeptKind.MATERIALIZED_VIEW,
        tables={table.name: table.ref.path for table in lake if chance.random() < 0.5},
        float_sums=chance.choice(list(FloatSums)),
        kept=table,
    )
    return Kept(spark, workspace, lake, text, resolve_query_in(spark, request))


@pytest.mark.parametrize("seed", some(range(PROGRAMS), now=(0, 1, 2, 5)))
def test_kept_rows_are_the_answer_of_the_query(
    seed: int, spark: SparkSession, workspace: Workspace, lakes: Lakes, tmp_path: Path
) -> None:
    """Kept rows of one point and the changes since give the answer at another. Some programs are also refreshed, in
    steps: one of 10, and one of 8 of the many more.
    """
    lake = lakes(seed // QUERIES_OF_A_LAKE)
    chance = random.Random(seed)
    written = seed % (10 if seed < PROGRAMS else 8) == 0
    kept = make(spark, workspace, lake, seed, KeptTable("v", str(tmp_path / "kept")) if written else None)
    assert "another plan" not in (kept.shape.why or ""), kept.said
    points = [sorted(chance.choices(range(1, table.version + 1), k=4)) for table in lake]
    first, second, third, last = ([point[n] for point in points] for n in range(4))
    assert same(kept.unwritten(first, last), kept.answer(last)), kept.said
    if written:
        refreshed_in_steps(kept, first, second, third, last)


@pytest.mark.nightly(reason="hundreds of programs take an hour", proven_by="test_kept_rows_are_the_answer_of_the_query")
@pytest.mark.timeout(4 * 3600)
def test_kept_rows_of_many_more_programs_are_the_answers(
    spark: SparkSession, workspace: Workspace, lakes: Lakes, tmp_path: Path
) -> None:
    for seed in range(PROGRAMS, PROGRAMS + SOAK):
        (room := tmp_path / str(seed)).mkdir()
        test_kept_rows_are_the_answer_of_the_query(seed, spark, workspace, lakes, room)


def refreshed_in_steps(kept: Kept, first: Ends, second: Ends, third: Ends, last: Ends) -> None:
    """Each step gives the answer at its end, a second attempt writes nothing, and all rows are what changes gave."""
    changes = RefreshHow.WHOLE if kept.shape.shape is Shape.PLAIN else RefreshHow.CHANGES
    kept.refresh(kept.window(first, first, initial=True), RefreshHow.CHANGES)
    assert same(kept.rows(), kept.answer(first)), kept.said
    kept.refresh(kept.window(first, second), changes)
    assert same(kept.rows(), kept.answer(second)), kept.said
    assert kept.refresh(kept.window(first, second), changes, again=True).found
    assert same(kept.fresh(kept.window(second, last)), kept.answer(last)), f"fresh {kept.said}"
    compacted = RefreshHow.COMPACTED if kept.shape.shape is Shape.SUMS else changes
    kept.refresh(kept.window(second, third), compacted)
    assert same(kept.rows(), kept.answer(third)), kept.said
    kept.refresh(kept.window(third, last), changes)
    assert same(kept.rows(), kept.answer(last)), f"after a compaction {kept.said}"
    incremental = kept.stored()
    whole = kept.refresh(kept.window(third, last), RefreshHow.WHOLE)
    assert same(kept.rows(), kept.answer(last)), f"in full {kept.said}"
    assert whole.rows.get("inserted", 0) == len(kept.stored())
    assert kept.shape.shape is Shape.SUMS or same(incremental, kept.stored()), f"ids {kept.said}"
