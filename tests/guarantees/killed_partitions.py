"""Runs DAGs that read a change stream, for the kill tests, in a process group of its own: give it the points.

Each point has a consumer group and a table of its own. `again` in front of them: the next run of each.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG, TriggerRule

from tests.dag_runs import run_registered
from tests.guarantees.failpoint_writes import name_of
from tidemark.operators.partitions import (
    CommitPartitionsOperator,
    FinishPartitionsOperator,
    PlanPartitionsOperator,
    ReadPartitionOperator,
)

LOGICAL_DATE = datetime(2026, 1, 1, tzinfo=UTC)
STREAM = "killed_records"


def dag_of(point: str) -> DAG:
    """One wave, its two partitions in two chunks of one task."""
    name = name_of(point)
    of_group = {"change_stream": STREAM, "consumer_group": f"g_{name}"}
    with DAG(f"read_killed_at_{name}", schedule=None) as dag:
        plan = PlanPartitionsOperator(task_id="plan", **of_group)
        read = ReadPartitionOperator.partial(
            task_id="read", change_stream=STREAM, write_as="append", target=f"kill.records_{name}"
        ).expand(bundle=plan.output)
        commit = CommitPartitionsOperator(task_id="commit", **of_group, trigger_rule=TriggerRule.ALL_DONE)
        finish = FinishPartitionsOperator(task_id="finish", **of_group, trigger_rule=TriggerRule.ALL_DONE)
        plan >> read >> commit >> finish
    return dag


def run(points: list[str], at: datetime) -> None:
    for point in points:
        finished = run_registered(dag_of(point), logical_date=at, run_after=at)
        if str(finished.state) != "success":
            sys.exit(f"{point}: the run ended as {finished.state}")


if __name__ == "__main__":
    os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
    is_next = sys.argv[1] == "again"
    run(sys.argv[1 + is_next :], LOGICAL_DATE + timedelta(days=is_next))
