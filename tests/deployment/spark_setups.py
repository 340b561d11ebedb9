"""Where the tasks of a deployment have their Spark: in the task's own process group, on a cluster, behind a server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.airflow.connect_server import connect_server
from tests.airflow.standalone_cluster import CLIENT_CONF, standalone_cluster

__all__ = ["SETUPS", "SparkSetup"]


@dataclass(frozen=True)
class SparkSetup:
    """The environment of the tasks, and how much Spark does for them now, beside their drivers."""

    environment: Mapping[str, str]
    at_work: Callable[[], int]


@contextmanager
def local(directory: Path) -> Iterator[SparkSetup]:
    yield SparkSetup({"TIDEMARK_SPARK_MASTER": "local[1]"}, lambda: 0)


@contextmanager
def standalone(directory: Path) -> Iterator[SparkSetup]:
    with standalone_cluster(directory) as cluster:
        environment = _connected(cluster.connection(), CLIENT_CONF)
        yield SparkSetup(environment, cluster.applications)


@contextmanager
def connect(directory: Path) -> Iterator[SparkSetup]:
    with connect_server(directory) as server:
        yield SparkSetup(_connected(server.connection(), {}), lambda: server.running_jobs() + len(server.kept()))


SETUPS = {spark_setup.__name__: spark_setup for spark_setup in (local, standalone, connect)}


def _connected(spark: str, conf: Mapping[str, str | int]) -> Mapping[str, str]:
    extra = {"spark_conn_id": "spark_of_tasks", "spark_conf": conf}
    tidemark = json.dumps({"conn_type": "tidemark", "extra": extra})
    return {"AIRFLOW_CONN_SPARK_OF_TASKS": spark, "AIRFLOW_CONN_TIDEMARK_DEFAULT": tidemark}
