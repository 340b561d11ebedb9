"""Where the tasks of a deployment have their Spark: in the task's own process group, on a cluster, behind a server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.airflow.connect_server import connect_server
from tests.airflow.standalone_cluster import CLIENT_CONF, standalone_cluster

__all__ = ["PLACES", "SparkPlace"]


@dataclass(frozen=True)
class SparkPlace:
    """What tells the tasks of the place, and how much it does for them now, beside their drivers."""

    environment: Mapping[str, str]
    at_work: Callable[[], int]


@contextmanager
def local(directory: Path) -> Iterator[SparkPlace]:
    yield SparkPlace({"TIDEMARK_SPARK_MASTER": "local[1]"}, lambda: 0)


@contextmanager
def standalone(directory: Path) -> Iterator[SparkPlace]:
    with standalone_cluster(directory) as cluster:
        environment = _connected(cluster.connection(), CLIENT_CONF)
        yield SparkPlace(environment, cluster.applications)


@contextmanager
def connect(directory: Path) -> Iterator[SparkPlace]:
    with connect_server(directory) as server:
        yield SparkPlace(_connected(server.connection(), {}), lambda: server.running_jobs() + len(server.kept()))


PLACES = {place.__name__: place for place in (local, standalone, connect)}


def _connected(spark: str, conf: Mapping[str, str | int]) -> Mapping[str, str]:
    extra = {"spark_conn_id": "spark_of_tasks", "spark_conf": conf}
    tidemark = json.dumps({"conn_type": "tidemark", "extra": extra})
    return {"AIRFLOW_CONN_SPARK_OF_TASKS": spark, "AIRFLOW_CONN_TIDEMARK_DEFAULT": tidemark}
