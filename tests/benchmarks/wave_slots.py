"""A wave over four partitions in a whole Airflow with two task slots, from the first task's start to the run's end.

    python -m tests.benchmarks.wave_slots [--rounds 3] [--partitions 4]

API server, scheduler, DAG processor and triggerer share the machine with the jobs, which run in the warm Spark. Medians
of seconds after one round that is not counted. *run*: from the start of the run. *tasks*: from the first task's start
to the last one's end, so without the time that the scheduler needs to begin and to close a run.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.deployment.airflow_deployment import Deployment, running_airflow
from tests.postgresql import running_postgresql

if TYPE_CHECKING:
    from tests.airflow.fan_out import Shop

STREAM = "waves"
DAGS = ("one_task", "a_task_each")


def made_shop(home: Path, partitions: int) -> Shop:
    """A table, a change stream with so many partitions that has captured it, and a group for each DAG."""
    from tests.airflow.fan_out import Shop
    from tests.airflow.runs import Lake
    from tidemark.change_streams.worker.groups import create_group
    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.testing import local_spark

    lake = Lake(local_spark(warehouse=home / "warehouse", cores=1, memory="1g"), home / "lake")
    lake.create("b.source", "id BIGINT, customer BIGINT, status STRING", row_tracking=True)
    lake.create("b.records", "commit_timestamp TIMESTAMP, mod_type STRING")
    shop = Shop(lake, TidemarkHook(), "b.source", STREAM)
    shop.store.migrate()
    shop.open(partitions=partitions)
    shop.change(f"INSERT INTO {{t}} SELECT id, 0, 'new' FROM range({partitions * 100})")
    shop.capture(split_rows=10**9)
    for group in DAGS:
        create_group(shop.store, STREAM, group, "earliest")
    return shop


def seconds_of(deployment: Deployment, dag_id: str) -> tuple[float, float]:
    """(run, tasks) of one run."""
    run_id = deployment.trigger(dag_id)
    state = deployment.finish(dag_id, run_id, 600)
    assert state == "success", deployment.logs()
    run = deployment.api("GET", f"dags/{dag_id}/dagRuns/{run_id}")
    tasks: list[dict[str, Any]] = deployment.api("GET", f"dags/{dag_id}/dagRuns/{run_id}/taskInstances")[
        "task_instances"
    ]
    began = min(datetime.fromisoformat(task["start_date"]) for task in tasks if task["start_date"])
    ended = max(datetime.fromisoformat(task["end_date"]) for task in tasks if task["end_date"])
    whole = datetime.fromisoformat(run["end_date"]) - datetime.fromisoformat(run["start_date"])
    return whole.total_seconds(), (ended - began).total_seconds()


def main() -> None:
    """Print the medians as a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=4)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, running_postgresql() as server:
        home = Path(place)
        environment = {
            "AIRFLOW__CORE__DAGS_FOLDER": str(Path(__file__).parent / "wave_dags"),
            "AIRFLOW_CONN_TIDEMARK_DEFAULT": '{"conn_type": "tidemark"}',
            "TIDEMARK_LAKE_ROOT": str(home / "lake"),
            "TIDEMARK_SPARK_MASTER": "local[2]",
        }
        urls = [server.url(server.new_database()) for _ in range(2)]
        os.environ.update(environment, AIRFLOW_HOME=str(home / "here"), TIDEMARK_CONTROL_STORE=urls[1])
        shop = made_shop(home, given.partitions)
        figures = defaultdict(list)
        with running_airflow(home, *urls, environment) as deployment:
            for dag_id in DAGS:
                deployment.unpause(dag_id)
            for number in range(given.rounds + 1):
                for dag_id in DAGS:
                    _again(shop, dag_id)
                    figures[dag_id].append(seconds_of(deployment, dag_id))
                    print(number, dag_id, figures[dag_id][-1], flush=True)
            deployment.command("tidemark", "spark", "stop", "--now")
    print("| | run s | tasks s |\n| --- | --- | --- |")
    for dag_id, rows in figures.items():
        run, tasks = (statistics.median(column) for column in zip(*rows[1:], strict=True))
        print(f"| {dag_id.replace('_', ' ')} | {run:.1f} | {tasks:.1f} |")


def _again(shop: Shop, group: str) -> None:
    from tidemark.change_streams.worker.groups import reset_group

    reset_group(shop.store, STREAM, group, "earliest")


if __name__ == "__main__":
    main()
