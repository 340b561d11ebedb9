"""One DAG run for each partition of a change stream: a slow partition delays only its own children.

`change_stream_capture` captures every five minutes. It wakes a run of `change_stream_reader` for each partition that
has something to read. The partition's token is the run's partition key. A reader whose partition has ended wakes its
children. If a child has several parents, the last one to finish wakes it. A run that starts too early, or a second
time, finds nothing and is skipped. The next capture wakes a failed run again.

Both need the change stream of `change_stream_fan_out`: run that DAG once before.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Asset, Param, PartitionedAssetTimetable, TriggerRule, task

from flights.submit import NAMES
from tidemark.operators.backfill import BackfillTableOperator
from tidemark.operators.capture import CaptureChangesOperator
from tidemark.operators.partitions import CommitPartitionsOperator, PlanPartitionsOperator, ReadPartitionOperator

STREAM = "board_records"
GROUP = "board_continuously"
OF_GROUP = {"change_stream": STREAM, "consumer_group": GROUP}
TOKEN = "{{ dag_run.partition_key or params.token }}"
MOST = 500  # Airflow's scheduler takes no more keys at a time

# A key is the token of a partition that can be read. The events are hints, the control store is the truth.
PARTITIONS = Asset(name=f"tidemark.{STREAM}.{GROUP}.partitions", uri=f"x-tidemark://change_streams/{STREAM}/{GROUP}")

log = logging.getLogger("change_stream_continuous")

with DAG(
    "change_stream_capture",
    description="Captures, and wakes a reader for each partition that has something to read",
    schedule=timedelta(minutes=5),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    allowed_run_types=["scheduled", "manual"],
    doc_md=__doc__,
    tags=["tidemark", "example"],
) as capture_dag:
    backfill = BackfillTableOperator(task_id="backfill", **OF_GROUP, table=NAMES["board"], target=NAMES["continuous"])
    capture = CaptureChangesOperator(task_id="capture", change_stream=STREAM, allowed_skew_seconds=0)

    @task(outlets=[PARTITIONS])
    def wake(*, outlet_events: Any = None, run_id: Any = None) -> list[str]:
        """One event for each partition; skips without any, since a success with an outlet is an event itself."""
        from airflow.sdk.exceptions import AirflowSkipException

        from tidemark.change_streams.worker.continuous import ready_now
        from tidemark.hooks.tidemark import TidemarkHook

        store = TidemarkHook().open_store()
        tokens = ready_now(store, STREAM, GROUP, run=run_id, max_chunks=MOST, max_rows=1_000_000)
        if not tokens:
            raise AirflowSkipException("No partition has anything to read.")
        outlet_events[PARTITIONS].add_partitions(tokens)
        return tokens

    backfill >> capture >> wake()

with DAG(
    "change_stream_reader",
    description="Reads one partition, and wakes its children",
    schedule=PartitionedAssetTimetable(assets=PARTITIONS),
    catchup=False,
    max_active_runs=4,
    allowed_run_types=["asset_triggered", "manual"],
    params={"token": Param("", type="string", description="the partition, for a run by hand")},
    doc_md=__doc__,
    tags=["tidemark", "example"],
) as reader_dag:
    plan = PlanPartitionsOperator(task_id="plan", **OF_GROUP, token=TOKEN)
    read = ReadPartitionOperator.partial(
        task_id="read",
        change_stream=STREAM,
        write_as="merge",
        target=NAMES["continuous"],
        map_index_template="{{ task.bundle.range }}",
    ).expand(bundle=plan.output)
    commit = CommitPartitionsOperator(task_id="commit", **OF_GROUP)

    # A separate task: without a new key, its event would have the run's own key and start this run again and again.
    @task(outlets=[PARTITIONS], trigger_rule=TriggerRule.ALL_SUCCESS)
    def wake_next(token: str, *, outlet_events: Any = None, run_id: Any = None) -> list[str]:
        """The partition itself, if it continues, and its children that can be read now."""
        from airflow.sdk.exceptions import AirflowSkipException

        from tidemark.change_streams.worker.continuous import ready_after
        from tidemark.hooks.tidemark import TidemarkHook

        tokens = ready_after(TidemarkHook().open_store(), STREAM, GROUP, token, run=run_id, max_rows=1_000_000)
        if not tokens:
            raise AirflowSkipException("Nothing follows now.")
        outlet_events[PARTITIONS].add_partitions(tokens)
        return tokens

    plan >> read >> commit >> wake_next(TOKEN)
