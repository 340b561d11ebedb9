"""Windows are counted in bytes by their logs, and the job of each gets its number."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tidemark.lake.segments import checksum_name
from tidemark.model.codec import to_plain
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.operators._jobs import explain
from tidemark.streams.model.transaction_jobs import DryRunReport
from tidemark.streams.planning.bounds import UNBOUNDED
from tidemark.streams.planning.executors import ExecutorBounds
from tidemark.streams.worker.consume import consume
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.sizing import Sizing

from .world import World, key_of

SIZE = 1  # of each file of a synthetic table


@pytest.fixture
def world(sqlite_store: str, tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, sqlite_store)
    yield made
    made.store.close()


def sized(world: World, specs: list[JobSpec]) -> Runtime:
    """A runtime whose connection has bounds; `specs` gets its jobs."""

    def run(spec: JobSpec) -> JobResult:
        specs.append(spec)
        return world.run(spec)

    return replace(world.runtime, run=run, sizing=Sizing(ExecutorBounds(9, 2, bytes_per_executor=SIZE)))


def test_a_job_gets_the_bytes_of_its_window_and_the_log_says_what_was_planned(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.stream()
    for _ in range(3):
        world.source.append()
    world.source.optimize()  # changes no data
    specs: list[JobSpec] = []
    with caplog.at_level(logging.INFO):
        consume(sized(world, specs), key=key_of("one"), streams=("s",), writes=world.writes(), owner="a worker")
    assert [spec.planned_bytes for spec in specs] == [3 * SIZE]
    assert "Planned: 3 bytes, 3 executors, 2 if they are idle." in caplog.text


def test_initial_rows_are_counted_by_the_checksum_of_the_table_and_are_unknown_without_one(world: World) -> None:
    world.source.append()
    (world.source.path / checksum_name(1)).write_text(json.dumps({"tableSizeBytes": 777}))
    for number in (1, 0):
        specs: list[JobSpec] = []
        world.stream(f"s{number}", at_version=number, initial_rows=True)
        writes = tuple(replace(one, source=f"s{number}") for one in world.writes(number))
        consume(sized(world, specs), key=key_of(str(number)), streams=(f"s{number}",), writes=writes, owner="a worker")
        assert [spec.planned_bytes for spec in specs] == [777 if number else None]


def test_without_bounds_nothing_is_counted(world: World) -> None:
    world.stream()
    world.source.append()
    specs: list[JobSpec] = []
    runtime = replace(sized(world, specs), sizing=None)
    consume(runtime, key=key_of("one"), streams=("s",), writes=world.writes(), owner="a worker")
    assert [spec.planned_bytes for spec in specs] == [None]


def test_a_dry_run_shows_the_executors(world: World) -> None:
    world.stream()
    for _ in range(3):
        world.source.append()
    runtime = replace(sized(world, []), run=lambda spec: JobResult(to_plain(DryRunReport({"s": {}}))))
    found = explain(runtime, ["s"], key=key_of("one"), bound=UNBOUNDED)
    assert found["planned"] == {"bytes": 3 * SIZE, "min_executors": 2, "executors": 3, "max_executors": 3}
    without = explain(replace(runtime, sizing=None), ["s"], key=key_of("one"), bound=UNBOUNDED)
    assert set(without) == {"windows", "reads"}
