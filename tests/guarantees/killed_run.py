"""Runs DAGs for the kill tests in a process group of its own: `killed_run.py ACTION POINT…`.

`prepare` makes one stream a point; `run` runs the DAG of each point, whose key is the same every time.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime

from airflow.sdk import DAG

from tests.dag_runs import run_registered
from tests.guarantees.failpoint_writes import name_of
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.model.streams import StreamMode
from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.streams.worker.streams import create_stream

LOGICAL_DATE = datetime(2026, 1, 1, tzinfo=UTC)
SOURCE = "kill.source"


def dag_of(point: str) -> DAG:
    name = name_of(point)
    with DAG(f"killed_at_{name}", schedule=None) as dag:
        ConsumeStreamOperator(
            task_id="consume",
            stream=f"s_{name}",
            target=[f"kill.mirror_{name}", f"kill.history_{name}"],
            write_as="failpoint_writes:write_both",
        )
    return dag


def prepare(points: list[str]) -> None:
    hook = TidemarkHook()
    store = hook.open_store()
    source = hook.table(SOURCE)
    for point in points:
        version = hook.open_table(source).head()
        create_stream(
            store, name=f"s_{name_of(point)}", source=source, mode=StreamMode.STANDARD, at_version=version, who="test"
        )


def run(points: list[str]) -> None:
    for point in points:
        dag = dag_of(point)
        finished = run_registered(dag, logical_date=LOGICAL_DATE, run_after=LOGICAL_DATE)
        if str(finished.state) != "success":
            sys.exit(f"{point}: the run ended as {finished.state}")


if __name__ == "__main__":
    os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
    {"prepare": prepare, "run": run}[sys.argv[1]](sys.argv[2:])
