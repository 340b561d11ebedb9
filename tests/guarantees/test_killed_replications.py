"""Kill -9 at any step of capture, backfill and apply, or of the source's server, then go on: source = target, and
each event of a history is there once.

One process with a JVM of its own dies, as the whole of a worker and its job would; its run is tried again, then others
follow. One point and two tables; by `make test-all` every point and three tables.
"""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.guarantees.killed_processes import run_script
from tests.guarantees.killed_replication import RUN, TABLES
from tests.guarantees.replication_tables import SCHEMA
from tests.guarantees.replication_world import NAME, ReplicationWorld, made_source
from tests.postgresql import LOGICAL, PostgresServer, postgresql_or_skip
from tests.tiers import nightly, some_rows
from tidemark.errors import TidemarkError
from tidemark.failpoints import KILL_AT, REPLICATION_POINTS
from tidemark.replication.worker.objects import request_backfill

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(600)]

KILLED = tuple(REPLICATION_POINTS)
NOW = ("segment1.written", ("orders", "lines"))
RUNS = [NOW, *((point, TABLES) for point in KILLED)]


@pytest.mark.parametrize(("point", "names"), some_rows(RUNS, [NOW]))
def test_a_run_that_was_killed_is_gone_on_with_and_nothing_is_lost_or_twice(
    spark: SparkSession,
    source_server: PostgresServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
    names: tuple[str, ...],
) -> None:
    address, tables, writers = made_source(source_server, KILLED.index(point), names, without=("shift", "swap"))
    writers.run(60)
    writers.settle()
    world = ReplicationWorld(spark, address, tables, tmp_path, max_events=40)
    try:
        world.turn("first")
        if names == TABLES:
            request_backfill(world.store, NAME, [f"{SCHEMA}.lines"], by=world.by())
        writers.run(60)
        writers.settle()
        if point.startswith("segment2"):
            writers.empty()
        with monkeypatch.context() as killing:
            killing.setenv(KILL_AT, point)
            died = run_script("killed_replication.py", tmp_path, str(address.port), address.database, *names)
        assert died.returncode == -9, died.stdout[-3000:] + died.stderr[-3000:]
        writers.run(40)
        writers.finish()
        world.turn(RUN)
        world.catch_up()
        world.require_same()
    finally:
        writers.settle()
        world.source.drop(world.replication)
        world.store.close()


@pytest.fixture(scope="module")
def mortal_server() -> Iterator[PostgresServer]:
    """A server that other tests do not miss."""
    with postgresql_or_skip(LOGICAL) as server:
        yield server


@nightly(
    "ten random times",
    "tests/engine/replication/test_landed_envelopes.py"
    "::test_a_run_that_was_killed_is_continued_and_nothing_is_lost_or_twice",
)
@pytest.mark.parametrize("seed", range(10))
def test_a_server_that_was_killed_costs_a_run_and_nothing_else(
    spark: SparkSession, mortal_server: PostgresServer, tmp_path: Path, seed: int
) -> None:
    """Its processes end as at a power cut, while a run reads; it recovers and the next run goes on."""
    chance = random.Random(seed)
    address, tables, writers = made_source(mortal_server, seed, TABLES, without=("shift", "swap"))
    writers.run(150)
    writers.settle()
    world = ReplicationWorld(spark, address, tables, tmp_path)
    world.turn("first")
    request_backfill(world.store, NAME, [f"{SCHEMA}.{table.name}" for table in tables], by=world.by())
    failures: list[TidemarkError] = []

    def go_on() -> None:
        try:
            world.turn("second")
        except TidemarkError as error:
            failures.append(error)

    with writers.at_work(pause=0.03):
        running = threading.Thread(target=go_on)
        running.start()
        time.sleep(chance.uniform(0.2, 4.0))
        mortal_server.stop()
        time.sleep(0.5)
        mortal_server.start()
        running.join()
        time.sleep(0.3)
    writers.finish()
    world.turn("second")
    world.catch_up()
    world.require_same()
    world.source.drop(world.replication)
    world.store.close()
    for error in failures:
        assert "password" not in str(error)
