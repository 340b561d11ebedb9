"""An upkeep of a search table dies at any moment. Searches stay right, and the next upkeep covers what is left."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.control.kept_objects import drifted
from tests.engine.search.world import SearchWorld
from tests.guarantees.killed_processes import start_script
from tests.tiers import nightly
from tests.until import wait_until
from tidemark.client.lake import Lake
from tidemark.failpoints import KILL_AT, KILL_ONCE, SEARCH_POINTS

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

PROOF = "tests/properties/test_searches.py::test_searches_have_the_rows_of_scans"
FILES = 8
KEYS = [f"key-{number:06}" for number in (0, 250, 799, 900)]  # the last one is in no file


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> SearchWorld:
    made = SearchWorld(spark.newSession(), tmp_path / "lake", f"sqlite:///{tmp_path}/control.db")
    made.fill(FILES)
    return made


def assert_right(client: Lake) -> None:
    """Each key is found, whatever the search table covers."""
    for key in KEYS:
        found = client.search("shop.orders", f"id = '{key}'", columns=["id"]).to_arrow().to_pydict()
        assert found == {"id": [key] if key != KEYS[-1] else []}


def assert_kept(world: SearchWorld, client: Lake) -> None:
    """Every file is covered once, each key is in one file, and the history has each commit of the log once."""
    client.keep_search_path("shop.orders")
    search = client.search_optimization("shop.orders")
    assert (search.files, search.problem) == (FILES, None)
    table = world.spark.read.format("delta").load(search.location)
    assert table.where("path > 0").count() == FILES * 100
    covered = table.where("path = 0 AND file >= 0")
    assert covered.selectExpr("COUNT(DISTINCT name)", "COUNT(1)").collect()[0][:] == (FILES, FILES)
    assert sum(kept.mark.files for kept in client.search_history("shop.orders")) == FILES
    assert [len(client.explain_search("shop.orders", f"id = '{key}'").files) for key in KEYS] == [1, 1, 1, 0]
    assert drifted(client._context.store) == []


@nightly("a JVM for each kill", PROOF)
@pytest.mark.parametrize("point", SEARCH_POINTS)
def test_an_upkeep_that_was_killed_is_finished_by_the_next(world: SearchWorld, point: str) -> None:
    client, home = world.client(), world.root.parent
    client.add_search_optimization("shop.orders", "EQUALITY(id)")
    process = start_script("killed_upkeep.py", home, **{KILL_AT: point, KILL_ONCE: str(home / "killed")})
    assert process.wait(timeout=400) == -signal.SIGKILL, (home / "said.log").read_text()[-3000:]
    assert_right(client)
    assert_kept(world, client)
    assert_right(client)
    client.close()


@nightly("random moments", PROOF)
def test_upkeeps_that_are_killed_at_random_moments_are_finished_by_the_next(world: SearchWorld) -> None:
    client, home = world.client(), world.root.parent
    client.add_search_optimization("shop.orders", "EQUALITY(id)")
    for seed in range(4):
        process = start_script("killed_upkeep.py", home)
        wait_until((home / "ready").exists, seconds=300)
        time.sleep(random.Random(seed).uniform(0.0, 8.0))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert_right(client)
    assert_kept(world, client)
    client.close()
