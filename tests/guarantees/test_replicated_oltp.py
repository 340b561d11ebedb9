"""A MariaDB or MySQL under the small transactions of sysbench. Kill -9 ends runs of its replication, at failpoints and
at any moment. When the load rests, every target is its source.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.databases.mariadb import BinlogServer, mariadb_or_skip
from tests.databases.mysql_server import mysql_or_skip
from tests.guarantees.binlog_world import BinlogWorld
from tests.guarantees.killed_processes import script_of
from tests.guarantees.loaded_replication import run_under_way
from tests.guarantees.oltp_load import TABLES, fill, oltp_at_work
from tests.tiers import nightly
from tidemark.failpoints import KILL_AT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(7200)]

KILLS = int(os.environ.get("TIDEMARK_SOAK_OLTP", "6"))
FIRST = "backfill.written"  # the copies come with the first run alone
POINTS = ("events.written", "segment1.written", "events.staged", "segment1.before", "events.before")
PATIENCE = 300.0  # seconds for a process to come to its failpoint
SHORTER = "tests/engine/replication/test_capture_binlog.py::test_a_run_that_dies_loses_and_doubles_nothing"


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def server(request: pytest.FixtureRequest) -> Iterator[BinlogServer]:
    with (mariadb_or_skip if request.param == "mariadb" else mysql_or_skip)() as running:
        yield running


@nightly("killed processes beside a load of minutes", SHORTER)
def test_every_target_is_its_source_after_small_transactions_and_kills(
    spark: SparkSession, server: BinlogServer, tmp_path: Path
) -> None:
    chance, database = random.Random(KILLS), server.new_database("oltp")
    fill(server, database)
    with oltp_at_work(server, database):
        for number in range(KILLS):
            point = FIRST if number == 0 else POINTS[number // 2 % len(POINTS)] if number % 2 == 0 else None
            _killed_run(server, database, tmp_path, point, chance.uniform(20, 60))
    _require_same(spark, server, database, tmp_path)


def _killed_run(server: BinlogServer, database: str, home: Path, point: str | None, seconds: float) -> None:
    """A process that ends at the point, or after these seconds; its JVM goes with it."""
    command, environment = script_of("oltp_replication.py", home, server.kind.value, str(server.port), database)
    if point is not None:
        environment |= {KILL_AT: point}
    with (home / "runs.log").open("ab") as log:
        running = subprocess.Popen(command, env=environment, start_new_session=True, stdout=log, stderr=log)
        try:
            ended = running.wait(PATIENCE if point else seconds)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            ended = running.wait()
            assert point is None, f"{point} was not reached: {(home / 'runs.log').read_text()[-3000:]}"
    assert ended == -signal.SIGKILL, (home / "runs.log").read_text()[-3000:]  # none ended by itself


def _require_same(spark: SparkSession, server: BinlogServer, database: str, home: Path) -> None:
    world = BinlogWorld(spark, server, home, database=database)
    try:
        world.turn_together(f"run {run_under_way(home)}")
        world.catch_up()
        assert set(world.objects()) == set(TABLES)
        assert world.replication.batches > 1
        world.require_same()
    finally:
        world.store.close()
