"""A consumption through a standalone master and worker in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark
import pytest
from airflow.sdk import DAG

from tests.airflow.runs import Lake, Outcome
from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.streams import CreateStreamOperator

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.e2e]

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
HOST = "127.0.0.1"


@pytest.fixture
def master(tmp_path: Path) -> Iterator[int]:
    """The port of a master that has one worker with one core."""
    port = _free_port()
    master_class, worker_class = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
    where = ["--host", HOST, "--webui-port", "0"]
    with _daemon(tmp_path / "master.log", master_class, *where, "--port", str(port)) as log:
        _wait_for("I have been elected leader", log)
        limits = ["--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / "work")]
        with _daemon(tmp_path / "worker.log", worker_class, *where, *limits, f"spark://{HOST}:{port}") as worker_log:
            _wait_for("Successfully registered with master", worker_log)
            yield port


def test_a_stream_is_consumed_on_a_standalone_cluster_in_client_mode(
    run_dag: Callable[..., Outcome], lake: Lake, master: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    conf = {
        "spark.executor.memory": "512m",
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.sql.shuffle.partitions": 2,
        "spark.databricks.delta.snapshotPartitions": 1,
    }
    monkeypatch.setenv(
        "AIRFLOW_CONN_STANDALONE", json.dumps({"conn_type": "spark", "host": f"spark://{HOST}", "port": master})
    )
    monkeypatch.setenv(
        "AIRFLOW_CONN_TIDEMARK_DEFAULT",
        json.dumps({"conn_type": "tidemark", "extra": {"spark_conn_id": "standalone", "spark_conf": conf}}),
    )
    lake.create("c.source", "id BIGINT, name STRING", row_tracking=True)
    lake.sql("INSERT INTO {t} VALUES (1, 'one'), (2, 'two')", "c.source")
    lake.create("c.mirror", "id BIGINT, name STRING")
    with DAG("standalone", schedule=None) as dag:
        create = CreateStreamOperator(task_id="create", stream="clustered", on="c.source", show_initial_rows=True)
        create >> ConsumeStreamOperator(
            task_id="consume", stream="clustered", target="c.mirror", write_as="merge", keys="id"
        )
    assert run_dag(dag).state == "success"
    assert lake.rows("c.mirror") == [(1, "one"), (2, "two")]
    assert list((tmp_path / "work").glob("app-*/*/stderr")), "no executor of the worker took part"


@contextmanager
def _daemon(log: Path, *arguments: str) -> Iterator[Path]:
    """A Spark daemon in a process group of its own, which ends with the block."""
    environment = {**os.environ, "SPARK_LOCAL_IP": HOST, "SPARK_DAEMON_MEMORY": "256m"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(SPARK_CLASS), *arguments],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    try:
        yield log
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait_for(text: str, log: Path, seconds: float = 120.0) -> None:
    until = time.monotonic() + seconds
    while text not in log.read_text(errors="replace"):
        assert time.monotonic() < until, f"{text!r} never came: {log.read_text(errors='replace')[-2000:]}"
        time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
