"""A reclustering dies at any moment. Rows and streams see nothing of it, and the next attempt rewrites once."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.engine.clustering.world import World
from tests.guarantees.killed_processes import start_script
from tests.tiers import nightly
from tests.until import wait_until
from tidemark.clustering.model.tables import Goal
from tidemark.clustering.worker.recluster import recluster_table
from tidemark.failpoints import KILL_AT, KILL_ONCE, RECLUSTER_POINTS
from tidemark.model.statements import TransactionKey

PROOF = "tests/engine/clustering/test_upkeep_of_tables.py::test_a_killed_run_is_continued_and_rewrites_once"
pytestmark = [pytest.mark.spark, pytest.mark.e2e]


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> World:
    made = World(spark.newSession(), tmp_path)
    made.append(4)
    made.lake.create_stream("events_s", on="db.events")
    made.lake.cluster_by("db.events", ["k"], goal=Goal(depth=1))
    return made


def assert_rewritten_once(world: World, before: list[int]) -> None:
    """The run's next attempt ends it: one OPTIMIZE, one line of the ledger, the same rows, and nothing for streams."""
    (kept,) = world.lake.clustered_tables()
    runtime = world.lake._context.runtime
    done = recluster_table(runtime, kept, key=TransactionKey("dag", "run", "keep"))
    assert done.depth_after == 1.0
    commits = world.log.commits(1, world.log.head())
    assert [commit.operation for commit in commits].count("OPTIMIZE") == 1
    assert [(row.state, row.version) for row in world.ledger()] == [("done", done.version)]
    assert world.keys() == before
    assert world.lake.stream("events_s").count() == 0
    assert world.drifted() == []


@nightly("a JVM for each kill", PROOF)
@pytest.mark.parametrize("point", RECLUSTER_POINTS)
def test_a_reclustering_that_was_killed_rewrites_once(world: World, point: str) -> None:
    before, home = world.keys(), world.root.parent
    process = start_script("killed_recluster.py", home, **{KILL_AT: point, KILL_ONCE: str(home / "killed")})
    assert process.wait(timeout=400) == -signal.SIGKILL, (home / "said.log").read_text()[-3000:]
    assert world.keys() == before
    assert_rewritten_once(world, before)


@nightly("random moments", PROOF)
def test_reclusterings_that_are_killed_at_random_moments_rewrite_once(world: World) -> None:
    before, home = world.keys(), world.root.parent
    for seed in range(4):
        process = start_script("killed_recluster.py", home)
        wait_until((home / "ready").exists, seconds=300)
        time.sleep(random.Random(seed).uniform(0.0, 8.0))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert world.keys() == before
    assert_rewritten_once(world, before)
