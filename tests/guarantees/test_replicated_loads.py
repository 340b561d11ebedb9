"""Databases under a real load, replicated by runs that kill -9 ends at any moment: when the load rests, every target is
its source.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.guarantees.killed_processes import script_of
from tests.guarantees.loaded_replication import run_under_way
from tests.guarantees.replication_comparison import differences, source_rows, target_rows
from tests.guarantees.replication_loads import LOADS, Load
from tests.guarantees.replication_world import ReplicationWorld
from tests.guarantees.replication_writers import opened
from tests.postgresql import PostgresServer
from tests.tiers import nightly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(7200)]

KILLS = int(os.environ.get("TIDEMARK_SOAK_OLTP", "6"))
RANDOM = "tests/guarantees/test_replication_random.py::test_targets_are_their_source_whatever_was_written_meanwhile"


@nightly("killed processes beside a load of minutes", RANDOM)
@pytest.mark.parametrize("name", LOADS)
def test_every_target_is_its_source_after_a_load_and_kills(
    spark: SparkSession, source_server: PostgresServer, tmp_path: Path, name: str
) -> None:
    load, chance = LOADS[name], random.Random(name)
    database = source_server.new_database()
    load.fill(source_server, database)
    ended: Counter[int | None] = Counter()
    with load.at_work(source_server, database, tmp_path):
        for _ in range(KILLS):
            ended[_killed_run(source_server, database, tmp_path, name, chance.uniform(20, 60))] += 1
    assert ended == {-signal.SIGKILL: KILLS}  # none ended by itself
    _require_same(spark, source_server, database, tmp_path, load)


def _killed_run(server: PostgresServer, database: str, home: Path, name: str, seconds: float) -> int | None:
    """How a process ended that had this time; its JVM went with it."""
    command, environment = script_of("loaded_replication.py", home, str(server.port), database, name)
    with (home / "runs.log").open("ab") as log:
        running = subprocess.Popen(command, env=environment, start_new_session=True, stdout=log, stderr=log)
        try:
            return running.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            return running.wait()


def _require_same(spark: SparkSession, server: PostgresServer, database: str, home: Path, load: Load) -> None:
    world = ReplicationWorld(spark, server.address(database), load.tables, home)
    try:
        world.turn(f"run {run_under_way(home)}")
        world.catch_up()
        assert world.replication.batches > 1
        with opened(world.address) as connection:
            source = source_rows(connection, load.tables)
        for table in load.tables:
            target = spark.read.format("delta").load(world.objects()[table.name].target.path)
            assert differences(table, source[table.name], target_rows(target, table)) is None
    finally:
        world.source.drop(world.replication)
        world.store.close()
