"""Kill -9 at any of twelve points, then retry: targets right, each change once in the history, offset right.

Real Airflow tasks, real spark-submit. A point in the worker kills the worker, a point in the job kills driver and JVM.
On PostgreSQL one point, between the two writes; by `make test-all` every one on it and on SQLite.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.airflow_database import put_metadata_database
from tests.guarantees.failpoint_writes import name_of
from tests.postgresql import PostgresServer
from tests.tiers import selected, some
from tests.warm_spark import warm_path
from tidemark.control.store import ControlStore
from tidemark.delivery.model.marks import MarkKind, parse_mark
from tidemark.failpoints import KILL_AT, KILL_ONCE, POINTS
from tidemark.lake.delta_log import DeltaLog
from tidemark.streams.worker.streams import get_stream, stream_history

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.e2e, pytest.mark.spark]

HERE = Path(__file__).parent
IN_THE_WORKER = tuple(point for point in POINTS if point.split(".")[0] in {"begin", "submit", "commit", "event"})


KILLED = [(kind, point) for kind in ("sqlite", "postgresql") for point in POINTS]
NOW = (("postgresql", "write1.after"),)


def expected_exit(point: str) -> int:
    """A killed worker is gone; one whose job was killed fails, unless the job had left its whole result."""
    if point in IN_THE_WORKER:
        return -9
    return 0 if point == "result.written" else 1


class Installation:
    """An Airflow home with a lake and a control store, in which runs are killed at `points`."""

    def __init__(self, home: Path, store_url: str, points: tuple[str, ...]) -> None:
        self.home = home
        self.store_url = store_url
        self.points = points
        self.lake = home / "lake" / "kill"
        self.environment = {
            **os.environ,
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(HERE),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "TIDEMARK_SPARK_MASTER": "local[1]",
            "TIDEMARK_LAKE_ROOT": str(home / "lake"),
            "TIDEMARK_CONTROL_STORE": store_url,
            "PYTHONPATH": str(HERE.parent.parent),
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
        self, action: str, *points: str, kill_at: str | None = None, path: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        return self.run(str(HERE / "killed_run.py"), action, *points, kill_at=kill_at, path=path)

    def write_marks(self, table: str) -> int:
        log = DeltaLog.open(str(self.lake / table))
        marks = [parse_mark(c.user_metadata) for c in log.commits(0, log.head())]
        return sum(mark is not None and mark.kind is MarkKind.WRITE for mark in marks)


def store_on(kind: str, home: Path, request: pytest.FixtureRequest) -> str:
    """The URL of a store; the embedded one makes itself."""
    if kind == "sqlite":
        return f"sqlite:///{home}/tidemark.db"
    server: PostgresServer = request.getfixturevalue("postgresql")
    url = server.url(server.new_database())
    ControlStore(url).migrate()
    return url


def installed(spark: SparkSession, home: Path, store_url: str, points: tuple[str, ...]) -> Installation:
    """Every point has a stream and two targets of its own; the source changes once, after the streams were made."""
    made = Installation(home, store_url, points)
    source = f"delta.`{made.lake}/source`"
    spark.sql(
        f"CREATE TABLE {source} (id INT, name STRING) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
    )
    spark.sql(f"INSERT INTO {source} VALUES (1, 'one'), (2, 'two'), (3, 'three')")
    for point in made.points:
        mirror, history = (f"delta.`{made.lake}/{kind}_{name_of(point)}`" for kind in ("mirror", "history"))
        spark.sql(f"CREATE TABLE {mirror} USING delta AS SELECT * FROM {source}")
        spark.sql(f"CREATE TABLE {history} (id INT, name STRING, action STRING) USING delta")
    put_metadata_database(home)
    prepared = made.script("prepare", *made.points)
    assert prepared.returncode == 0, prepared.stderr
    spark.sql(f"INSERT INTO {source} VALUES (4, 'four')")
    spark.sql(f"UPDATE {source} SET name = 'zwei' WHERE id = 2")
    spark.sql(f"DELETE FROM {source} WHERE id = 3")
    return made


Killed = tuple[Installation, dict[str, subprocess.CompletedProcess[str]]]


@pytest.fixture(scope="module")
def killed_on(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Callable[[str], Killed]:
    """Each point's first attempt on a kind of store, then one process that retries them all; once for each kind.

    A parametrized fixture would be set up for every point anew.
    """

    @cache
    def on(kind: str) -> Killed:
        home = tmp_path_factory.mktemp("killed")
        points = tuple(point for store, point in selected(request, "killing") if store == kind)
        installation = installed(spark, home, store_on(kind, home, request), points)
        first = {point: installation.script("run", point, kill_at=point) for point in installation.points}
        with warm_path(spark, home, HERE) as path:  # the kill wants a driver of its own, the retry none
            retried = installation.script("run", *installation.points, path=path)
        assert retried.returncode == 0, retried.stdout[-4000:] + retried.stderr[-4000:]
        return installation, first

    return on


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("killing", some(KILLED, NOW), ids="-".join)
def test_a_retry_after_a_kill_delivers_each_change_once(
    spark: SparkSession, killed_on: Callable[[str], Killed], killing: tuple[str, str]
) -> None:
    kind, point = killing
    installation, killed = killed_on(kind)
    assert (installation.home / f"killed_{point}").exists(), killed[point].stdout[-3000:] + killed[point].stderr[-3000:]
    assert killed[point].returncode == expected_exit(point)

    mirror, history = f"mirror_{name_of(point)}", f"history_{name_of(point)}"
    rows = {
        kind: spark.read.format("delta").load(str(installation.lake / kind)).collect() for kind in (mirror, history)
    }
    assert sorted(tuple(row) for row in rows[mirror]) == [(1, "one"), (2, "zwei"), (4, "four")]
    assert sorted(tuple(row) for row in rows[history]) == [
        (2, "two", "DELETE"),
        (2, "zwei", "INSERT"),
        (3, "three", "DELETE"),
        (4, "four", "INSERT"),
    ]
    assert [installation.write_marks(table) for table in (mirror, history)] == [1, 1]

    store = ControlStore(installation.store_url)
    stream = get_stream(store, f"s_{name_of(point)}")
    assert stream.offset.version == DeltaLog.open(str(installation.lake / "source")).head()
    assert len(stream_history(store, stream.name)) == 2  # creation and this one move
