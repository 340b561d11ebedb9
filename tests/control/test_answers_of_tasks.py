"""Answers of queries in tasks: no files are left but those of kept answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.guarantees.world import World, key_of
from tidemark.errors import QueryNotReusable
from tidemark.model.codec import to_plain
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.results.model.answers import TIME_ZONE, ReuseRules, WrittenAnswer
from tidemark.results.model.jobs import RUN_QUERY, QueryReport
from tidemark.results.worker.cache import ResultCache
from tidemark.results.worker.queries import QueryAnswer, answer_query
from tidemark.streams.worker.runtime import Runtime

TEXT = "SELECT id + 1 AS a FROM source"
UTC_SESSION = {TIME_ZONE: "UTC"}


@pytest.fixture
def world(tmp_path: Path, sqlite_store: str) -> Iterator[World]:
    made = World(tmp_path, sqlite_store)
    yield made
    made.store.close()


def spark(spec: JobSpec) -> JobResult:
    """The driver of the job: it writes an answer of one row."""
    directory = Path(RUN_QUERY.requested(spec).directory.removeprefix("file://"))
    directory.mkdir(parents=True)
    pq.write_table(pa.table({"c0": [1]}), directory / "part-0.parquet")
    size = (directory / "part-0.parquet").stat().st_size
    schema = json.dumps({"type": "struct", "fields": [{"name": "a", "type": "long"}]})
    written = WrittenAnswer(f"file://{directory}", ("part-0.parquet",), 1, size, schema, "UTC")
    return JobResult(to_plain(QueryReport(written, UTC_SESSION)))


def answered(world: World, *, text: str = TEXT, most_bytes: int = 1 << 20, meanwhile: bool = False) -> QueryAnswer:
    """The answer of a task. `meanwhile`: another task has the same answer while the job runs."""

    def run(spec: JobSpec) -> JobResult:
        if meanwhile:
            answered(world)
        return spark(spec)

    return answer_query(
        ResultCache(world.store, str(world.root / "lake"), rules=ReuseRules(most_answer_bytes=most_bytes)),
        text,
        settings=UTC_SESSION,
        locate=lambda name: world.sources[name.split(".")[-1]].uri,
        views=lambda _: (),
        runtime=lambda: Runtime(world.store, run, world.paths),
        key=key_of("one"),
    )


def directories(world: World) -> list[str]:
    return sorted(f"file://{path}" for path in (world.root / "lake/results").glob("*"))


def test_an_answer_that_is_too_large_leaves_no_files_at_any_attempt(world: World) -> None:
    for _ in range(2):
        with pytest.raises(QueryNotReusable, match="are more than the 10 of one answer"):
            answered(world, most_bytes=10)
        assert directories(world) == []


def test_a_column_in_full_that_may_be_another_ones_is_refused_before_a_job(world: World) -> None:
    text = "SELECT s.source.id FROM s.source WHERE id IN (SELECT id FROM t.source)"
    with pytest.raises(QueryNotReusable, match=r"columns are qualified by s\.source, and source is another name"):
        answered(world, text=text)
    assert directories(world) == []


def test_the_second_of_two_answers_leaves_no_files(world: World) -> None:
    second = answered(world, meanwhile=True)
    assert second.written is not None
    assert directories(world) == [second.written.location]
    assert answered(world).origin == "cache"
