"""Kill -9 at any step of plan, read and commit, then the next run: each record once, the group at its end.

Real Airflow tasks, real spark-submit. A point in the worker kills the worker, a point in the job kills driver and JVM.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.airflow_database import put_metadata_database
from tests.guarantees.failpoint_writes import name_of
from tests.guarantees.killed_partitions import STREAM
from tests.guarantees.partition_invariants import require_invariants
from tests.tiers import nightly, selected
from tests.warm_spark import warm_path
from tidemark.change_streams.model.change_streams import ChangeStreamOptions, WatchedTable
from tidemark.change_streams.worker.capture import capture
from tidemark.change_streams.worker.definitions import create_change_stream
from tidemark.change_streams.worker.groups import create_group, group_status
from tidemark.control.store import ControlStore
from tidemark.failpoints import KILL_AT, KILL_ONCE, PARTITION_POINTS
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import Addressing, TableRef
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.runtime import Runtime

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT_RANDOM = "tests/guarantees/test_random_partition_trees.py::test_each_record_once_for_each_group_and_keys_in_order"
pytestmark = [pytest.mark.e2e, pytest.mark.spark, nightly("a start of Spark for each point", AT_RANDOM)]

HERE = Path(__file__).parent
IN_THE_JOB = ("write1.before", "write1.after", "result.written")
MODS = "ARRAY<STRUCT<keys: STRING, new_values: STRING, old_values: STRING>>"
EXPECTED = Counter({("INSERT", str(key)): 1 for key in range(6)} | {("DELETE", "5"): 1, ("UPDATE", "1"): 1})


def expected_exit(point: str) -> int:
    """A killed worker is gone; one whose job was killed fails, unless the job had left its whole result."""
    if point not in IN_THE_JOB:
        return -9
    return 0 if point == "result.written" else 1


class Installation:
    """An Airflow home, and a lake with a captured change stream that a group for each point reads."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        self.spark, self.home, self.lake = spark, home, home / "lake" / "kill"
        self.store = ControlStore(f"sqlite:///{home}/tidemark.db")
        self.environment = {
            **os.environ,
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(HERE),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "TIDEMARK_SPARK_MASTER": "local[1]",
            "TIDEMARK_LAKE_ROOT": str(home / "lake"),
            "TIDEMARK_CONTROL_STORE": f"sqlite:///{home}/tidemark.db",
            "PYTHONPATH": os.pathsep.join(filter(None, (str(HERE.parent.parent), os.environ.get("PYTHONPATH")))),
        }

    def run(
        self, *arguments: str, kill_at: str | None = None, path: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        more = {KILL_AT: kill_at, KILL_ONCE: str(self.home / f"killed_{kill_at}")} if kill_at else {}
        more |= {"PATH": path} if path else {}
        return subprocess.run(
            [sys.executable, *arguments],
            env={**self.environment, **more},
            start_new_session=True,
            capture_output=True,
            text=True,
            timeout=400,
        )

    def script(
        self, *points: str, kill_at: str | None = None, path: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        return self.run(str(HERE / "killed_partitions.py"), *points, kill_at=kill_at, path=path)

    def prepare(self, points: list[str]) -> None:
        """Two partitions with records of inserts, an update and a delete."""
        from tidemark.jobs.run import run

        source = self.lake / "source"
        tracked = "TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
        self.spark.sql(f"CREATE TABLE delta.`{source}` (id INT, name STRING) USING delta {tracked}")
        table = TableRef("kill.source", str(source), DeltaLog.open(str(source)).state().table_id, Addressing.PATH)
        create_change_stream(
            self.store,
            name=STREAM,
            tables=(WatchedTable(table, ("id",), None, 0),),
            everything=False,
            options=ChangeStreamOptions(),
            log_path=str(self.lake / "log"),
            initial_partitions=2,
        )
        for point in points:
            target = self.lake / f"records_{name_of(point)}"
            self.spark.sql(f"CREATE TABLE delta.`{target}` (mod_type STRING, mods {MODS}) USING delta")
            create_group(self.store, STREAM, f"g_{name_of(point)}", "earliest")
        self.spark.sql(f"INSERT INTO delta.`{source}` SELECT id, 'new' FROM range(6)")
        self.spark.sql(f"UPDATE delta.`{source}` SET name = 'eins' WHERE id = 1")
        self.spark.sql(f"DELETE FROM delta.`{source}` WHERE id = 5")
        capture(
            Runtime(
                self.store,
                run=lambda spec: run(self.spark, spec, say=lambda _: None),
                paths=JobPaths(f"{self.home}/lake/_tidemark", f"{self.home}/jobs"),
                tables=lambda one: DeltaLog.open(one if isinstance(one, str) else one.path),
            ),
            STREAM,
            allowed_skew=timedelta(0),
        )


Killed = tuple[Installation, dict[str, subprocess.CompletedProcess[str]]]


@pytest.fixture(scope="module")
def killed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Killed:
    """Each point's first attempt, then one process with the next run of each."""
    installation = Installation(spark, tmp_path_factory.mktemp("killed_partitions"))
    points = selected(request, "point")
    installation.prepare(points)
    put_metadata_database(installation.home)
    first = {point: installation.script(point, kill_at=point) for point in points}
    with warm_path(spark, installation.home, HERE) as path:  # the kill wants a driver of its own, the retry none
        retried = installation.script("again", *points, path=path)
    assert retried.returncode == 0, retried.stdout[-4000:] + retried.stderr[-4000:]
    return installation, first


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("point", PARTITION_POINTS)
def test_a_run_after_a_kill_delivers_each_record_once(killed: Killed, point: str) -> None:
    installation, first = killed
    assert (installation.home / f"killed_{point}").exists(), first[point].stdout[-3000:] + first[point].stderr[-3000:]
    assert first[point].returncode == expected_exit(point)
    path = str(installation.lake / f"records_{name_of(point)}")
    rows = installation.spark.read.format("delta").load(path).collect()
    found = Counter((row.mod_type, json.loads(mod["keys"])["id"]) for row in rows for mod in row.mods)
    assert found == EXPECTED
    log = DeltaLog.open(path)
    numbers = [number for commit in log.commits(0, log.head()) for number in commit.transactions.items()]
    assert len(numbers) == len(set(numbers)) == 2
    require_invariants(installation.store, STREAM)
    status = group_status(installation.store, STREAM, f"g_{name_of(point)}")
    assert (status.open_chunks, status.failed) == (0, {})
    assert status.low_watermark == status.published_until
