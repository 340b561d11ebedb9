"""A load dies at any moment, and the next run continues it. Each file is in the table once, and its report is true."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.guarantees.killed_processes import script_of
from tests.guarantees.load_world import LoadWorld, copy_spec, pipe_spec
from tests.tiers import nightly
from tests.until import wait_until
from tidemark.failpoints import KILL_AT, KILL_ONCE, LOAD_POINTS
from tidemark.model.codec import to_json
from tidemark.model.jobs import JobSpec

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

SCRIPT = "killed_load.py"
SOAK = int(os.environ.get("TIDEMARK_SOAK_LOADS", "100"))


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> LoadWorld:
    return LoadWorld(spark, tmp_path)


def fill(world: LoadWorld, number: int) -> None:
    """Three files: good rows, a bad one among them, none."""
    world.put(f"good {number}.csv", [str(number * 100 + n) for n in range(20)])
    world.put(f"bad {number}.csv", ["1", "x", "3"])
    world.put(f"empty {number}.csv", [])
    world.note()


def started(world: LoadWorld, spec: JobSpec, **environment: str) -> subprocess.Popen[bytes]:
    (world.home / "spec.json").write_text(to_json(spec))
    (world.home / "ready").unlink(missing_ok=True)
    command, known = script_of(SCRIPT, world.home)
    said = (world.home / "said.log").open("ab")
    return subprocess.Popen(command, env={**known, **environment}, start_new_session=True, stdout=said, stderr=said)


def assert_whole(world: LoadWorld) -> None:
    assert world.rows() == world.expected_rows()
    assert world.reports() == world.expected_reports()


@pytest.mark.parametrize("point", LOAD_POINTS)
def test_a_run_of_a_pipe_that_was_killed_is_finished_by_the_next(world: LoadWorld, point: str) -> None:
    fill(world, 1)
    process = started(world, pipe_spec(world.home), **{KILL_AT: point, KILL_ONCE: str(world.home / "killed")})
    assert process.wait(timeout=300) == -signal.SIGKILL, (world.home / "said.log").read_text()[-3000:]
    fill(world, 2)
    world.run(pipe_spec(world.home))
    assert_whole(world)
    assert world.run(pipe_spec(world.home))["batches"] == 0


@pytest.mark.parametrize("point", ["load.appended"])
def test_a_copy_that_was_killed_reports_what_it_had_loaded(world: LoadWorld, point: str) -> None:
    fill(world, 1)
    spec = copy_spec(world.home, "dag/run/copy/-1")
    process = started(world, spec, **{KILL_AT: point, KILL_ONCE: str(world.home / "killed")})
    assert process.wait(timeout=300) == -signal.SIGKILL, (world.home / "said.log").read_text()[-3000:]
    report = world.run(spec)
    assert {file["file"]: file["status"] for file in report["files"]} == {
        "bad 1.csv": "LOAD_FAILED",
        "empty 1.csv": "LOADED",
        "good 1.csv": "LOADED",
    }
    assert world.rows() == world.expected_rows()
    assert world.run(spec) == report


def kill_at_random(world: LoadWorld, kills: int, chance: random.Random) -> None:
    """Runs that are killed within their first seconds, among new files, and one run at the end that is not."""
    for number in range(kills):
        fill(world, number)
        process = started(world, pipe_spec(world.home, max_files=2))
        wait_until(lambda process=process: (world.home / "ready").exists() or process.poll() is not None, seconds=120)
        time.sleep(chance.uniform(0, 8))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=60)
    finished: dict[str, Any] = world.run(pipe_spec(world.home, batches=1_000_000))
    assert finished["pending"] == 0
    assert_whole(world)


def test_kills_at_random_moments_lose_and_double_no_file(world: LoadWorld) -> None:
    kill_at_random(world, 2, random.Random(12))


@nightly(
    "a start of Spark for each kill",
    f"{__name__.replace('.', '/')}.py::test_a_run_of_a_pipe_that_was_killed_is_finished_by_the_next",
)
@pytest.mark.timeout(7200)
def test_a_hundred_kills_lose_and_double_no_file(world: LoadWorld) -> None:
    kill_at_random(world, SOAK, random.Random(SOAK))
