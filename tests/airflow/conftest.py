"""Airflow in a home of its own, made before Airflow is imported; DAGs run by `dag.test()` with the real task runner."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from datetime import datetime
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

from tests.airflow.runs import Lake, Outcome  # noqa: E402

if TYPE_CHECKING:
    from airflow.sdk import DAG
    from pyspark.sql import SparkSession

    from tidemark.hooks.tidemark import TidemarkHook


@pytest.fixture(scope="session")
def airflow_home() -> Path:
    """Airflow's home with a migrated metadata database."""
    subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], check=True, capture_output=True, timeout=180)
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
        started = tmp_path / "started"
        binary = tmp_path / "bin" / "spark-submit"
        binary.parent.mkdir(exist_ok=True)
        binary.write_text(f'#!/bin/bash\necho "$@" >> {started}\nspec="${{@: -1}}"\n{script}\n')
        binary.chmod(0o755)
        monkeypatch.setenv("PATH", f"{binary.parent}{os.pathsep}{os.environ['PATH']}")
        return started

    return stand_in


@pytest.fixture
def warm_spark(
    spark: SparkSession, spark_submit: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Jobs run in the session's Spark instead of a new one each: the script hands the spec over and waits.

    What it saves is the start of a JVM; job, worker and the files between them are the real ones.
    """
    monkeypatch.syspath_prepend(str(Path(__file__).parent))  # what PYTHONPATH does for a submitted job
    queue = tmp_path / "queue"
    queue.mkdir()
    started = spark_submit(
        f'cd {queue}; printf %s "$TIDEMARK_SOURCE" > $$.source; echo "$spec" > $$.half; mv $$.half $$.spec\n'
        "while [ ! -e $$.done ]; do sleep 0.05; done; cat $$.said; exit $(cat $$.done)"
    )
    ended = threading.Event()
    server = threading.Thread(target=_serve, args=(spark, queue, ended), daemon=True)
    server.start()
    yield started
    ended.set()
    server.join()


def _serve(spark: SparkSession, queue: Path, ended: threading.Event) -> None:
    from tidemark.jobs.files import read_spec, write_result
    from tidemark.jobs.run import run
    from tidemark.model.codec import from_json
    from tidemark.model.replication import SourceAddress

    while not ended.wait(0.05):
        for request in queue.glob("*.spec"):
            spec = read_spec(request.read_text().strip())
            request.unlink()
            said: list[str] = []
            source = request.with_suffix(".source").read_text()
            address = from_json(SourceAddress, source) if source else None
            result = run(spark, spec, say=said.append, source=address)
            write_result(spec.result_uri, result)
            request.with_suffix(".said").write_text("".join(f"tidemark: {line}\n" for line in said))
            request.with_suffix(".half").write_text("0" if result.error is None else "1")
            request.with_suffix(".half").replace(request.with_suffix(".done"))


@pytest.fixture(scope="session")
def lake(spark: SparkSession) -> Lake:
    return Lake(spark, HOME / "lake")
