"""A real Spark Connect server for tests: on this host, with Delta, behind a token, one for a module."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyspark

from tests.ports import free_port, lasting_port
from tidemark.model.spark import DELTA_PACKAGE, DELTA_SETTINGS

__all__ = ["ConnectServer", "connect_server"]

SPARK_HOME = Path(pyspark.__file__).parent
MAIN = "org.apache.spark.sql.connect.service.SparkConnectServer"
SMALL = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.log.level": "WARN",
    "spark.ui.showConsoleProgress": "false",
}


@dataclass(frozen=True)
class ConnectServer:
    """Where it listens. `localhost`, because elsewhere a client sends a token only by TLS."""

    port: int
    ui_port: int
    process_id: int
    token: str = field(repr=False)

    def connection(self, *, port: int | None = None) -> str:
        """An Airflow connection as JSON."""
        return json.dumps(
            {
                "conn_type": "spark_connect",
                "host": "localhost",
                "port": port or self.port,
                "login": "tidemark",
                "password": self.token,
            }
        )

    def running_jobs(self, *, since: timedelta = timedelta(0)) -> int:
        """How many Spark jobs run in the server now and have run for so long, whoever ordered them."""
        begun = (job["submissionTime"].replace("GMT", "Z") for job in self._ask("jobs?status=running"))
        return sum(datetime.now(UTC) - datetime.fromisoformat(one) >= since for one in begun)

    def kept(self) -> list[str]:
        """The DataFrames that the server keeps in memory, without the logs that Delta keeps for all sessions."""
        names = [entry["name"] for entry in self._ask("storage/rdd")]
        return [name for name in names if not name.startswith("Delta Table State")]

    def _ask(self, what: str) -> list[dict[str, Any]]:
        api = f"http://localhost:{self.ui_port}/api/v1/applications"
        with urllib.request.urlopen(api, timeout=60) as answer:
            (application,) = json.load(answer)
        with urllib.request.urlopen(f"{api}/{application['id']}/{what}", timeout=10) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found


@contextmanager
def connect_server(directory: Path, *, cores: int = 2, more: Mapping[str, str] = SMALL) -> Iterator[ConnectServer]:
    """A server with the settings `more`, which ends with the block."""
    port, ui_port, token = free_port(), lasting_port(), secrets.token_hex(8)
    settings = {
        **more,
        **DELTA_SETTINGS,
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "localhost",
        "spark.ui.port": str(ui_port),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
    }
    conf = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", f"local[{cores}]", "--class", MAIN]
    environment = {
        **os.environ,
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": token,
    }
    log = directory / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--packages", DELTA_PACKAGE, *conf, "spark-internal"],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=directory,
            start_new_session=True,
        )
    try:
        _wait_for(port, process, log)
        yield ConnectServer(port, ui_port, process.pid, token)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path, seconds: float = 120.0) -> None:
    until = time.monotonic() + seconds
    while True:
        with suppress(OSError), socket.create_connection(("localhost", port), timeout=1):
            return
        said = log.read_text(errors="replace")[-2000:]
        assert process.poll() is None, f"the server ended: {said}"
        assert time.monotonic() < until, f"the server never listened: {said}"
        time.sleep(0.2)
