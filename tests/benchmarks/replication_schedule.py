"""How long a change takes from its commit in the source to its target where a DAG on a schedule brings it there.

    python -m tests.benchmarks.replication_schedule --seconds 600 --rate 1000 --every 60

A whole Airflow (API server, scheduler, DAG processor, triggerer; LocalExecutor with two tasks at once) runs `replicate`
on a table of 100,000 rows every so many seconds, or `replicate_continuously` with `--every 0`. Jobs run in the warm
Spark of the host.
Writers and lag are those of `replication_lag`. When the writers rest and all is applied, the target must be the source.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.benchmarks.replication_lag import lags, made_tables, table_of, writing
from tests.deployment.airflow_deployment import Deployment, running_airflow, wait_for
from tests.guarantees.replication_comparison import differences, source_rows, target_rows
from tests.guarantees.replication_tables import SourceTable
from tests.guarantees.replication_writers import opened
from tests.postgresql import LOGICAL, running_postgresql
from tidemark.control.store import ControlStore
from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.replication import LogPosition, ReplicatedObject
from tidemark.replication.sources.open import open_source
from tidemark.replication.worker.definitions import get_replication
from tidemark.replication.worker.objects import objects_of
from tidemark.testing import local_spark

DAG, REPLICATION = "replicate_shop", "shop"
PATIENCE = 900.0  # seconds for a run to end on a busy machine


@contextmanager
def scheduled(address: SourceAddress, home: Path, every: int) -> Iterator[Deployment]:
    """An Airflow in which the DAG runs by itself."""
    connection = {"conn_type": "postgres", "host": address.host, "port": address.port, "schema": address.database}
    environment = {
        "AIRFLOW_CONN_SHOP_DATABASE": json.dumps({**connection, "login": address.user, "password": address.password}),
        "AIRFLOW__CORE__DAGS_FOLDER": str(Path(__file__).parent / "scheduled_dags"),
        "REPLICATE_EVERY": str(every),
        "TIDEMARK_LAKE_ROOT": str(home / "lake"),
        "TIDEMARK_SPARK_MASTER": "local[1]",
    }
    with running_postgresql() as server:
        urls = (server.url(server.new_database()) for _ in range(2))
        with running_airflow(home, *urls, environment) as deployment:
            yield deployment


def wait_for_run(deployment: Deployment, since: datetime) -> None:
    """Until a run that began later has succeeded."""

    def has_ended() -> bool:
        return any(
            run["state"] == "success" and datetime.fromisoformat(run["start_date"]) > since for run in _runs(deployment)
        )

    wait_for(has_ended, PATIENCE, deployment.logs)


def _runs(deployment: Deployment) -> list[dict[str, Any]]:
    return [run for run in deployment.runs(DAG) if run["start_date"] is not None]


def _has(one: ReplicatedObject, position: LogPosition) -> bool:
    return one.applied is not None and one.applied >= position


def measured(home: Path, seconds: int, rate: int, every: int) -> dict[str, Any]:
    """Of the runs that began and the changes that were committed while `seconds` passed."""
    with running_postgresql(LOGICAL) as server:
        address = server.address(server.new_database())
        tables = made_tables(address, 1)
        with scheduled(address, home, every) as deployment:
            deployment.unpause(DAG)
            wait_for_run(deployment, datetime.fromtimestamp(0).astimezone())  # the backfill
            with writing(address, tables, rate) as done:
                wait_for_run(deployment, datetime.now().astimezone())  # catches up with what came meanwhile
                since, first = datetime.now().astimezone(), done[0]
                time.sleep(seconds)
                changes, until = done[0] - first, datetime.now().astimezone()
            store = ControlStore(deployment.store_url)
            end = open_source(address).current_position()
            wait_for(lambda: all(_has(one, end) for one in objects_of(store, REPLICATION)), PATIENCE, deployment.logs)
            deployment.pause(DAG)
            runs = [
                run
                for run in _runs(deployment)
                if since < datetime.fromisoformat(run["start_date"]) < until and run["end_date"]
            ]
            found = lags_of(store, address, tables, since)
        return {"rate": changes / seconds, "runs": runs, "lags": [one for one in found if one[0] <= until.timestamp()]}


def lags_of(
    store: ControlStore, address: SourceAddress, tables: Sequence[SourceTable], since: datetime
) -> list[tuple[float, float]]:
    """Raises AssertionError where a target is not its source."""
    spark = local_spark(memory="2g")
    objects = objects_of(store, REPLICATION)
    with opened(address) as connection:
        rows = source_rows(connection, tables)
    for one, table in zip(objects, tables, strict=True):
        target = spark.read.format("delta").load(one.target.path)
        problem = differences(table, rows[table.name], target_rows(target, table))
        assert problem is None, problem
    events = spark.read.format("delta").load(get_replication(store, REPLICATION).event_log)
    return lags(events, objects, since)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--every", type=int, default=60, help="seconds between runs; 0: rounds")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        found = measured(Path(place), given.seconds, given.rate, given.every)
    took = [
        (datetime.fromisoformat(run["end_date"]) - datetime.fromisoformat(run["start_date"])).total_seconds()
        for run in found["runs"]
    ]
    runs = f"{len(took)} runs of {statistics.median(took):.1f} s (median)" if took else "no run that ended"
    print(f"{found['rate']:,.0f} changes/s, {runs}")
    print(table_of(found["lags"]))


if __name__ == "__main__":
    main()
