"""Drivers in a real YARN: a window for two targets comes once, whoever is killed in the middle, and a cancel ends all.

Worker, application master, executor, resource manager and node manager are processes of this host.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tests.airflow.runs import Lake
from tests.tiers import nightly
from tests.yarn_cluster import SPARK_CONF, YarnCluster, running_yarn
from tidemark.control.store import ControlStore
from tidemark.failpoints import CLUSTER_POINTS, KILL_AT, KILL_ONCE
from tidemark.lake.tables import table_ref
from tidemark.model.streams import StreamMode
from tidemark.streams.store.schema import jobs
from tidemark.streams.worker.streams import create_stream, get_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.e2e,
    pytest.mark.timeout(1200),
    nightly(
        "a YARN of its own, and an application for each attempt",
        "tests/guarantees/test_left_drivers_are_waited_for.py::"
        "test_the_retry_waits_for_the_driver_of_a_dead_worker_and_starts_no_other",
    ),
]

WORKER = Path(__file__).with_name("yarn_worker.py")
TABLES = {
    "c.source": "id BIGINT, name STRING",
    "c.mirror": "id BIGINT, name STRING",
    "c.history": "id BIGINT, name STRING",
}
ROWS = [(1, "one"), (2, "two"), (3, "three")]
PATIENCE = 400.0  # on a machine that is busy, a driver takes a minute


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YarnCluster]:
    with running_yarn(tmp_path_factory.mktemp("yarn")) as running:
        yield running


@dataclass
class Shop:
    """A lake with a stream on its source, and workers that consume it in YARN."""

    yarn: YarnCluster
    lake: Lake
    home: Path
    before: frozenset[str]

    @property
    def store(self) -> ControlStore:
        return ControlStore(f"sqlite:///{self.home}/control.db")

    def applications(self) -> list[dict[str, Any]]:
        """Those of this shop."""
        return [app for app in self.yarn.applications() if app["id"] not in self.before]

    def start(self, **environment: str) -> subprocess.Popen[str]:
        """A worker in a process of its own."""
        conf = dict(SPARK_CONF)
        given = {"conn_type": "tidemark", "extra": {"spark_conn_id": "the_yarn", "spark_conf": conf}}
        return subprocess.Popen(
            [sys.executable, str(WORKER), "one"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={
                **os.environ,
                "AIRFLOW_HOME": str(self.home / "airflow"),
                "AIRFLOW_CONN_TIDEMARK_DEFAULT": json.dumps(given),
                "AIRFLOW_CONN_THE_YARN": self.yarn.connection(),
                "HADOOP_CONF_DIR": str(self.yarn.conf),
                "TIDEMARK_CONTROL_STORE": f"sqlite:///{self.home}/control.db",
                "TIDEMARK_LAKE_ROOT": str(self.lake.root),
                **environment,
            },
            start_new_session=True,  # a failpoint kills the whole process group
        )

    def running(self, word: str) -> tuple[str, list[psutil.Process]]:
        """The application that runs, once it has processes with the word, and these."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            for app in self.applications():
                if app["state"] == "RUNNING" and (found := self.yarn.processes(app["id"], word)):
                    return app["id"], found
            time.sleep(0.5)
        raise AssertionError(f"no {word} of {self.applications()}")

    def delivered(self) -> None:
        """Each change is in both targets once, and the offset has moved."""
        assert self.lake.rows("c.mirror") == ROWS
        assert self.lake.rows("c.history") == ROWS
        assert get_stream(self.store, "s").offset.version == 1


@pytest.fixture
def shop(yarn: YarnCluster, spark: SparkSession, tmp_path: Path) -> Shop:
    lake = Lake(spark, tmp_path / "lake")
    for name in TABLES:
        lake.create(name, "id BIGINT, name STRING", row_tracking=name == "c.source")
    made = Shop(yarn, lake, tmp_path, frozenset(app["id"] for app in yarn.applications()))
    source = table_ref("c.source", f"file://{lake.root}", {})
    create_stream(made.store, name="s", source=source, mode=StreamMode.STANDARD, at_version=0, who="test")
    lake.sql("INSERT INTO {t} VALUES (1, 'one'), (2, 'two'), (3, 'three')", "c.source")
    return made


def ended(worker: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code of a worker and all that it said."""
    said, _ = worker.communicate(timeout=PATIENCE)
    return worker.returncode, said


def delivers(shop: Shop) -> str:
    code, said = ended(shop.start())
    assert code == 0, said
    shop.delivered()
    return said


def test_a_window_is_delivered_by_one_application_whose_id_is_stored(shop: Shop) -> None:
    delivers(shop)
    (app,) = shop.applications()
    assert (app["state"], app["finalStatus"]) == ("FINISHED", "SUCCEEDED")
    (row,) = shop.store.read(lambda connection: connection.execute(jobs.select()).all())
    assert (row.application, row.outcome, row.host) == (app["id"], "done", f"YARN at {shop.yarn.address}")
    assert app["applicationTags"] == f"tidemark-{row.id}"
    assert list((shop.lake.root / "_tidemark" / "cluster_jobs").iterdir()) == []


def test_a_killed_application_master_is_told_and_the_retry_delivers(shop: Shop) -> None:
    worker = shop.start()
    application, masters = shop.running("ApplicationMaster")
    for master in masters:
        master.kill()
    code, said = ended(worker)
    assert code == 1, said
    assert f"DriverDied: The driver of the job for d/one/t/-1, application {application}" in said
    assert "137" in said, "YARN's diagnostics"
    delivers(shop)
    assert len(shop.applications()) == 2


def test_a_killed_worker_leaves_its_driver_which_the_retry_waits_for(shop: Shop) -> None:
    worker = shop.start()
    application, _ = shop.running("ApplicationMaster")
    worker.kill()
    ended(worker)
    said = delivers(shop)
    assert f"waiting for {application}" in said
    assert [app["id"] for app in shop.applications()] == [application]


@pytest.mark.parametrize("point", CLUSTER_POINTS)
def test_a_worker_that_dies_before_the_id_is_stored_has_its_driver_found_by_the_tag(shop: Shop, point: str) -> None:
    worker = shop.start(**{KILL_AT: point, KILL_ONCE: str(shop.home / "killed")})
    code, said = ended(worker)
    assert code == -signal.SIGKILL, said
    (row,) = shop.store.read(lambda connection: connection.execute(jobs.select()).all())
    assert row.application is None
    delivers(shop)
    (app,) = shop.applications()
    (row,) = shop.store.read(lambda connection: connection.execute(jobs.select()).all())
    assert (row.id, row.outcome) == (app["applicationTags"].removeprefix("tidemark-"), "done")


def test_a_driver_that_dies_between_its_two_targets_has_the_rest_written_by_the_retry(shop: Shop) -> None:
    killed = {KILL_AT: "write1.after", KILL_ONCE: str(shop.home / "killed")}
    code, said = ended(shop.start(**killed))
    assert (code, "DriverDied" in said) == (1, True), said
    assert (len(shop.lake.rows("c.mirror")), len(shop.lake.rows("c.history"))) == (3, 0)
    delivers(shop)


def test_a_cancel_kills_the_application_and_the_next_attempt_delivers(shop: Shop) -> None:
    worker = shop.start()
    application, _ = shop.running("ApplicationMaster")
    worker.send_signal(signal.SIGTERM)
    code, said = ended(worker)
    assert (code, "JobCancelled" in said) == (1, True), said
    (app,) = shop.applications()
    assert app["state"] in ("KILLED", "FINISHED"), app  # the marker may be faster
    assert shop.yarn.processes(application, "ApplicationMaster") == []
    delivers(shop)


def test_a_killed_node_manager_neither_loses_nor_doubles_a_change(shop: Shop) -> None:
    worker = shop.start()
    shop.running("ExecutorBackend")
    shop.yarn.kill_node()
    code, said = ended(worker)  # by its result, or since YARN gave the node up
    shop.yarn.start_node()
    if code != 0:
        assert "DriverEndUnproven" in said, said
        delivers(shop)
    shop.delivered()
