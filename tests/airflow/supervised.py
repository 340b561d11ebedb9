"""A task as a worker runs it: Airflow's supervisor, the task in a process of its own, and an execution API that keeps
what it is told.

`python -m tests.airflow.supervised`: what to run and where to keep it is JSON on standard input: {dags, file, dag,
task, connections, log, asked}. The log is what Airflow keeps of the task; `asked` gets every request with its body.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

__all__ = ["main"]

NOW = datetime(2026, 6, 1, tzinfo=UTC).isoformat()


class KeptApi:
    """Answers what a task asks of Airflow's execution API; a connection that is not given is not found."""

    def __init__(self, connections: dict[str, dict[str, Any]], asked: Path, dag: str) -> None:
        self._connections = connections
        self._asked = asked
        self._dag = dag

    def __call__(self, request: httpx.Request) -> httpx.Response:
        parts = request.url.path.strip("/").split("/")
        with self._asked.open("a") as kept:
            kept.write(f"{request.method} {request.url} {request.read().decode()}\n")
        if parts[-1] == "run":
            return httpx.Response(200, json=self._context())
        if parts[-1] == "validate-inlets-and-outlets":
            return httpx.Response(200, json={"inactive_assets": []})
        if parts[0] == "connections":
            return self._connection(parts[1])
        if request.method == "GET":
            return httpx.Response(404, json={"detail": {"reason": "not_found", "message": "not here"}})
        return httpx.Response(204)

    def _connection(self, conn_id: str) -> httpx.Response:
        if conn_id not in self._connections:
            return httpx.Response(404, json={"detail": {"reason": "not_found", "message": "no such connection"}})
        empty = dict.fromkeys(("host", "schema", "login", "password", "port", "extra"))
        return httpx.Response(200, json={"conn_id": conn_id, **empty, **self._connections[conn_id]})

    def _context(self) -> dict[str, Any]:
        none = dict.fromkeys(("data_interval_start", "data_interval_end", "end_date", "partition_key"))
        run = {"dag_id": self._dag, "run_id": "supervised", "logical_date": NOW, "run_after": NOW, "start_date": NOW}
        return {
            "dag_run": {**run, **none, "run_type": "manual", "state": "running", "consumed_asset_events": []},
            "max_tries": 0,
        }


def main() -> int:
    given = json.load(sys.stdin)
    os.environ["AIRFLOW__CORE__DAGS_FOLDER"] = given["dags"]
    from airflow.sdk.api.client import Client
    from airflow.sdk.api.datamodels._generated import BundleInfo, TaskInstance
    from airflow.sdk.execution_time.supervisor import supervise_task

    api = KeptApi(given["connections"], Path(given["asked"]), given["dag"])
    client = Client(base_url=None, dry_run=True, token="", transport=httpx.MockTransport(api))
    ids = {"id": uuid.uuid4(), "dag_version_id": uuid.uuid4()}
    instance = TaskInstance(**ids, task_id=given["task"], dag_id=given["dag"], run_id="supervised", try_number=1)
    return supervise_task(
        ti=instance,
        bundle_info=BundleInfo(name="dags-folder"),
        dag_rel_path=given["file"],
        token="",
        log_path=given["log"],
        client=client,
    )


if __name__ == "__main__":
    sys.exit(main())
