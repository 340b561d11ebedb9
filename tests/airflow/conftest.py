"""Airflow in a home of its own, made before Airflow is imported; DAGs run by `dag.test()` with the real task runner."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

HOME = Path(tempfile.mkdtemp(prefix="tidemark-airflow-"))
os.environ.update(
    AIRFLOW_HOME=str(HOME),
    AIRFLOW__CORE__DAGS_FOLDER=str(HOME / "dags"),
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    AIRFLOW__CORE__UNIT_TEST_MODE="False",
    TIDEMARK_SPARK_MASTER="local[1]",
    TIDEMARK_LAKE_ROOT=str(HOME / "lake"),
)
(HOME / "dags").mkdir()

import pytest  # noqa: E402

from tests.airflow.replicated_shop import ReplicatedShop  # noqa: E402
from tests.airflow.runs import Lake, Outcome  # noqa: E402
from tests.airflow.warm_hook import end_warm_servers  # noqa: E402
from tests.airflow_database import put_metadata_database  # noqa: E402
from tests.postgresql import PostgresServer  # noqa: E402
from tests.tiers import some  # noqa: E402
from tests.warm_spark import hand_over, put_in_place, serving  # noqa: E402

if TYPE_CHECKING:
    from airflow.sdk import DAG
    from fastapi import FastAPI
    from pyspark.sql import SparkSession

    from tidemark.hooks.tidemark import TidemarkHook


@pytest.fixture(scope="session")
def airflow_home() -> Path:
    """Airflow's home with a migrated metadata database. Airflow reads its home at its import, so it is imported here: a
    test that names another home, for its processes, would else give that to all later tests.
    """
    put_metadata_database(HOME)
    import_module("airflow.settings")
    return HOME


@pytest.fixture
def run_dag(airflow_home: Path) -> Callable[..., Outcome]:
    """Registers a DAG that a test has built, runs it, and returns what became of it.

    The same `at` names the same run: it is cleared and run again.
    """
    from tests.dag_runs import run_registered

    def run(dag: DAG, at: datetime | None = None, conf: dict[str, Any] | None = None) -> Outcome:
        when = {} if at is None else {"run_after": at, "logical_date": at}
        return Outcome(run_registered(dag, run_conf=conf, **when))

    return run


@pytest.fixture
def hook(airflow_home: Path) -> TidemarkHook:
    """The hook with no connection defined."""
    from tidemark.hooks.tidemark import TidemarkHook

    return TidemarkHook()


@pytest.fixture
def spark_submit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Puts a shell script in the place of spark-submit; it keeps a record of having been started."""

    def stand_in(script: str) -> Path:
        started, binary = tmp_path / "started", tmp_path / "bin" / "spark-submit"
        put_in_place(binary, started, script)
        monkeypatch.setenv("PATH", f"{binary.parent}{os.pathsep}{os.environ['PATH']}")
        return started

    return stand_in


@pytest.fixture
def warm_spark(
    spark: SparkSession, spark_submit: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Jobs run in the session's Spark instead of a new one each."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))  # what PYTHONPATH does for a submitted job
    queue = tmp_path / "queue"
    queue.mkdir()
    started = spark_submit(hand_over(queue))
    with serving(spark, queue):
        yield started


@pytest.fixture(scope="session")
def warm_servers() -> Iterator[None]:
    """Ends the warm Sparks that jobs have started."""
    yield
    for jobs in HOME.glob("tidemark-jobs-*"):
        end_warm_servers(jobs)


@pytest.fixture(params=some(["warm", "submit"], {"warm"}, "a start of Spark for each job"))
def users_spark(request: pytest.FixtureRequest, warm_servers: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """Jobs run in a Spark of their own, as they do for users: in the warm one of this host, or in a JVM each."""
    monkeypatch.setenv("TIDEMARK_SPARK_MODE", request.param)
    return str(request.param)


@pytest.fixture(scope="session")
def lake(spark: SparkSession) -> Lake:
    return Lake(spark, HOME / "lake")


@pytest.fixture(scope="module")
def app(airflow_home: Path) -> Iterator[FastAPI]:
    """The monitor's app, as it is mounted in Airflow."""
    from tests.airflow.monitor_app import mounted_app

    with mounted_app() as mounted:
        yield mounted


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes a URL the control store of the default connection."""
    return lambda url: monkeypatch.setenv("TIDEMARK_CONTROL_STORE", url)


@pytest.fixture
def shop(
    source_server: PostgresServer, airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ReplicatedShop:
    """A shop's database with 60 orders, and a lake for its replication, which is not defined yet."""
    return ReplicatedShop.at(source_server, tmp_path, monkeypatch.setenv, orders=60)


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Callable[[], str]:
    return lambda: " ".join((caplog.text + capfd.readouterr().out).split())


@pytest.fixture
def when_deferred() -> Iterator[Callable[[Callable[[], object]], None]]:
    """Does something when the trigger has begun to wait."""
    from tests.unit.triggers.sea import threads_of_triggers

    threads: list[threading.Thread] = []

    def do(act: Callable[[], object]) -> None:
        def watch() -> None:
            until = time.monotonic() + 60
            while not threads_of_triggers() and time.monotonic() < until:
                time.sleep(0.02)
            time.sleep(0.3)
            act()

        threads.append(threading.Thread(target=watch))
        threads[-1].start()

    yield do
    for thread in threads:
        thread.join()
