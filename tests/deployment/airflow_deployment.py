"""Airflow as it runs in production: API server, scheduler, DAG processor and triggerer, each a process group."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from tests.ports import free_port

__all__ = ["COMPONENTS", "Deployment", "running_airflow", "wait_for"]

COMPONENTS = ("api-server", "scheduler", "dag-processor", "triggerer")
DAGS = Path(__file__).parent / "dags"
_WITHOUT_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_SETTINGS = {
    "CORE__EXECUTOR": "LocalExecutor",
    "CORE__PARALLELISM": "2",
    "CORE__LOAD_EXAMPLES": "False",
    "CORE__DAGS_FOLDER": str(DAGS),
    "CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
    "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
    "CORE__FERNET_KEY": "",
    "API_AUTH__JWT_SECRET": "a secret that all processes of this deployment share",
    "SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "15",
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "3",
    "SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "10",
    "SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "5",
    "WORKERS__MIN_HEARTBEAT_INTERVAL": "2",
    "TRIGGERER__DEFAULT_CAPACITY": "100",
}


class Deployment:
    """Components that were killed stay dead until they are started again."""

    def __init__(self, home: Path, metadata_url: str, store_url: str, environment: Mapping[str, str]) -> None:
        self.home = home
        self.store_url = store_url
        self.port = free_port()
        self.url = f"http://localhost:{self.port}"
        self._components: dict[str, subprocess.Popen[bytes]] = {}
        self._token: str | None = None
        settings = {
            **_SETTINGS,
            "CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "DATABASE__SQL_ALCHEMY_CONN": metadata_url,
            "DATABASE__SQL_ALCHEMY_CONN_ASYNC": metadata_url,
        }
        self._environment = {
            **os.environ,
            **{f"AIRFLOW__{name}": value for name, value in settings.items()},
            "AIRFLOW_HOME": str(home),
            "TIDEMARK_CONTROL_STORE": store_url,
            "no_proxy": "localhost",
            **environment,
        }

    def command(self, *arguments: str) -> None:
        """Run one command of Airflow's to its end."""
        done = subprocess.run(
            [sys.executable, "-m", "airflow", *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=180,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]

    def start(self, component: str) -> None:
        more = ["--port", str(self.port), "--host", "127.0.0.1", "--workers", "1"] if component == "api-server" else []
        with (self.home / f"{component}.log").open("ab") as log:
            self._components[component] = subprocess.Popen(
                [sys.executable, "-m", "airflow", component, *more],
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        if component == "api-server":
            wait_for(lambda: _answers(f"{self.url}/api/v2/version"), 180, self.logs)

    def kill(self, component: str) -> None:
        """SIGKILL to all that it is made of; a driver that it started is in a group of its own and lives on."""
        process = self._components.pop(component)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(20)

    def stop(self) -> None:
        for process in self._components.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self._components.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for driver in self.drivers():
            driver.kill()

    def api(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The answer of the REST API as a user has it."""
        if self._token is None:
            self._token = _ask("GET", f"{self.url}/auth/token", None, {})["access_token"]
        return _ask(method, f"{self.url}/api/v2/{path}", body, {"Authorization": f"Bearer {self._token}"})

    def trigger(self, dag_id: str, **conf: Any) -> str:
        """Triggers a run by hand, as soon as the DAG is known; returns its run id."""
        wait_for(lambda: self._is_known(dag_id), 120, self.logs)
        body = {"logical_date": datetime.now(UTC).isoformat(), "conf": conf}
        return str(self.api("POST", f"dags/{dag_id}/dagRuns", body)["dag_run_id"])

    def unpause(self, dag_id: str) -> None:
        """Lets the DAG run by itself, as soon as it is known."""
        wait_for(lambda: self._is_known(dag_id), 120, self.logs)
        self.api("PATCH", f"dags/{dag_id}", {"is_paused": False})

    def pause(self, dag_id: str) -> None:
        self.api("PATCH", f"dags/{dag_id}", {"is_paused": True})

    def runs(self, dag_id: str) -> list[dict[str, Any]]:
        """All runs of a DAG, oldest first."""
        return list(self.api("GET", f"dags/{dag_id}/dagRuns?order_by=id")["dag_runs"])

    def state(self, dag_id: str, run_id: str) -> str:
        return str(self.api("GET", f"dags/{dag_id}/dagRuns/{run_id}")["state"])

    def task_state(self, dag_id: str, run_id: str, task_id: str) -> str:
        return str(self.api("GET", f"dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}")["state"])

    def clear(self, dag_id: str, run_id: str, task_id: str, **how: bool) -> None:
        """Has the task of that run run again."""
        body = {"dry_run": False, "task_ids": [task_id], "dag_run_id": run_id, "only_failed": False, **how}
        self.api("POST", f"dags/{dag_id}/clearTaskInstances", body)

    def finish(self, dag_id: str, run_id: str, seconds: float = 240) -> str:
        """The state in which a run ends."""
        wait_for(lambda: self.state(dag_id, run_id) in ("success", "failed"), seconds, self.logs)
        return self.state(dag_id, run_id)

    def drivers(self) -> list[psutil.Process]:
        """Every process of a Spark driver of this deployment: spark-submit, JVM, Python."""
        return [process for process in psutil.process_iter() if self._is_driver(process)]

    def logs(self) -> str:
        """The end of what each component and each task said, for the message of a failure."""
        files = [*self.home.glob("*.log"), *sorted((self.home / "logs").rglob("attempt=*.log"))[-4:]]
        return "\n".join(f"--- {file.name}\n{file.read_text(errors='replace')[-2500:]}" for file in files)

    def _is_driver(self, process: psutil.Process) -> bool:
        try:
            return str(self.home) in process.cwd() and any("jobs/__main__.py" in word for word in process.cmdline())
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return False

    def _is_known(self, dag_id: str) -> bool:
        try:
            return str(self.api("GET", f"dags/{dag_id}")["dag_id"]) == dag_id
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return False


@contextmanager
def running_airflow(
    home: Path, metadata_url: str, store_url: str, environment: Mapping[str, str]
) -> Iterator[Deployment]:
    """All components on new databases, which are migrated here; ends them and what they left running."""
    deployment = Deployment(home, metadata_url, store_url, environment)
    deployment.command("db", "migrate")
    deployment.command("tidemark", "db", "migrate")
    try:
        for component in COMPONENTS:
            deployment.start(component)
        yield deployment
    finally:
        deployment.stop()


def wait_for(holds: Callable[[], bool], seconds: float, logs: Callable[[], str]) -> None:
    """Returns as soon as it holds; fails with the logs if it does not in time."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, f"not within {seconds} s:\n{logs()}"
        time.sleep(0.5)


def _ask(method: str, url: str, body: Mapping[str, Any] | None, headers: Mapping[str, str]) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **headers}, method=method)
    with _WITHOUT_PROXY.open(request, timeout=60) as answer:
        return json.load(answer)


def _answers(url: str) -> bool:
    try:
        return bool(_WITHOUT_PROXY.open(url, timeout=5).status == 200)
    except OSError:
        return False
