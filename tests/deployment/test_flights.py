"""The example DAGs in a whole Airflow: on schedule, by hand through the REST API, and by new data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.deployment.airflow_deployment import Deployment, running_airflow, wait_for
from tests.postgresql import PostgresServer
from tests.tiers import nightly
from tidemark.control.store import ControlStore
from tidemark.lake.delta_log import DeltaLog
from tidemark.streams.worker.streams import get_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.spark,
    pytest.mark.e2e,
    nightly("the example DAGs in a whole Airflow"),
    pytest.mark.timeout(1800),
]
DAGS = Path(__file__).parents[2] / "dags"


@pytest.fixture(scope="module")
def deployment(postgresql: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """With the project's own DAGs, paused as a user finds them."""
    home = tmp_path_factory.mktemp("flights")
    environment = {
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "True",
        "TIDEMARK_SPARK_MASTER": "local[2]",
        "TIDEMARK_LAKE_ROOT": str(home / "lake"),
    }
    urls = (postgresql.url(postgresql.new_database()) for _ in range(2))
    with running_airflow(home, *urls, environment) as running:
        yield running


def test_flights_flow_on_schedule_by_hand_and_by_new_data(deployment: Deployment, spark: SparkSession) -> None:
    deployment.unpause("flights_stream")
    wait_for(lambda: bool(deployment.runs("flights_stream")), 120, deployment.logs)
    (scheduled,) = deployment.runs("flights_stream")
    assert scheduled["run_type"] == "scheduled"
    assert deployment.finish("flights_stream", scheduled["dag_run_id"], 900) == "success"

    deployment.unpause("late_departures")
    first = deployment.trigger("late_departures")
    assert deployment.finish("late_departures", first) == "success"

    by_hand = deployment.trigger("flights_stream", days=2 / 24)
    assert deployment.finish("flights_stream", by_hand, 600) == "success"
    wait_for(lambda: _is_read(deployment, "board_departures"), 300, deployment.logs)
    for run in deployment.runs("late_departures"):
        assert deployment.finish("late_departures", run["dag_run_id"]) == "success"
    by_data = [run for run in deployment.runs("late_departures") if run["run_type"] == "asset_triggered"]
    assert by_data

    board = _rows(spark, deployment, "board", "*")
    assert board == _rows(spark, deployment, "board_mirror", "*")
    late = "service_date, carrier, flight, origin, dest, departure_delay"
    assert _rows(spark, deployment, "board", late, "departure_delay >= 15") == _rows(
        spark, deployment, "late_departures", late
    )


def _is_read(deployment: Deployment, stream: str) -> bool:
    offset = get_stream(ControlStore(deployment.store_url), stream).offset.version
    return offset == DeltaLog.open(str(deployment.home / "lake/nyc/board")).head()


def _rows(spark: SparkSession, deployment: Deployment, table: str, columns: str, where: str = "true") -> list[Any]:
    location = deployment.home / "lake" / "nyc" / table
    found = spark.sql(f"SELECT {columns} FROM delta.`{location}` WHERE {where}").collect()
    return sorted(map(str, found))
