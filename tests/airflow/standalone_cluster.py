"""A real standalone master and worker for tests, on this host, in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark

from tests.ports import free_port

__all__ = ["CLIENT_CONF", "StandaloneCluster", "standalone_cluster"]

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
HOST = "127.0.0.1"
CLIENT_CONF: Mapping[str, str | int] = {
    "spark.executor.memory": "512m",
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.sql.shuffle.partitions": 2,
    "spark.databricks.delta.snapshotPartitions": 1,
}
"""What an application of a small machine needs to run there."""


@dataclass(frozen=True)
class StandaloneCluster:
    """A master whose workers have one core each."""

    port: int
    ui_port: int
    work: Path

    def connection(self) -> str:
        """An Airflow connection as JSON."""
        return json.dumps({"conn_type": "spark", "host": f"spark://{HOST}", "port": self.port})

    def applications(self) -> int:
        """How many applications the master has that have not ended, those that wait for cores included."""
        with urllib.request.urlopen(f"http://{HOST}:{self.ui_port}/json/", timeout=10) as answer:
            return len(json.load(answer)["activeapps"])


@contextmanager
def standalone_cluster(directory: Path, *, workers: int = 1) -> Iterator[StandaloneCluster]:
    """Master and workers, which end with the block."""
    port, ui_port, work = free_port(), free_port(), directory / "work"
    master_class, worker_class = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
    where = ("--host", HOST, "--port", str(port), "--webui-port", str(ui_port))
    with _daemon(directory / "master.log", master_class, *where) as log:
        _wait_for("I have been elected leader", log)
        limits = ("--host", HOST, "--webui-port", "0", "--cores", "1", "--memory", "1g", "--work-dir", str(work))
        with ExitStack() as running:
            for number in range(workers):
                name = directory / f"worker{number}.log"
                worker_log = running.enter_context(_daemon(name, worker_class, *limits, f"spark://{HOST}:{port}"))
                _wait_for("Successfully registered with master", worker_log)
            yield StandaloneCluster(port, ui_port, work)


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
