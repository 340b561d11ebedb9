"""A day of real flights, read from a change stream in parallel: busy partitions split, and merge again.

A change stream captures the changes of the board. Its first reader begins with the rows that the board has at that
moment. It continues with the records of later changes, with neither a gap nor an overlap. Mapped tasks read the
partitions of the change stream, parents before their children, and merge them into a mirror of the board. In each run,
half of `days` passes before the backfill, which only the first run writes, and half after it.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Param, task

from flights.submit import NAMES, run_job
from flights.summary import replay_line
from tidemark.operators.backfill import BackfillTableOperator
from tidemark.operators.change_streams import CreateChangeStreamOperator
from tidemark.task_groups.change_stream_partitions import change_stream_partitions

STREAM = "board_records"
GROUP = "board_in_parallel"
KEY = ["service_date", "carrier", "flight", "origin"]

log = logging.getLogger("flights")

with DAG(
    "change_stream_fan_out",
    description="Real flights through the partitions of a change stream, in parallel mapped tasks",
    schedule=None,
    catchup=False,
    max_active_runs=1,  # a consumer group has one position
    allowed_run_types=["scheduled", "manual"],  # a position has no date, so nothing can be backfilled by date
    default_args={"retries": 1, "retry_delay": timedelta(seconds=10)},
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    params={
        "days": Param(
            1, type="number", exclusiveMinimum=0, maximum=31, description="days of 2013 that pass in this run"
        )
    },
    doc_md=__doc__,
    tags=["tidemark", "example"],
) as dag:

    @task
    def replay(params: dict[str, Any]) -> dict[str, Any]:
        """Creates the tables if they are missing; a retry continues at the first hour that the board lacks."""
        replayed = run_job("replay", days=params["days"] / 2)
        log.info(replay_line(replayed))
        return replayed

    create_stream = CreateChangeStreamOperator(
        task_id="create_stream",
        change_stream=STREAM,
        watch=NAMES["board"],
        keys=KEY,
        options={"retention_period": "7d"},
        initial_partitions=2,
    )

    backfill = BackfillTableOperator(
        task_id="backfill",
        change_stream=STREAM,
        consumer_group=GROUP,
        table=NAMES["board"],
        target=NAMES["parallel"],
    )

    # A day has some 1,800 changes, so these small limits let the partitions split and merge within one run.
    deliver = change_stream_partitions(
        "deliver",
        change_stream=STREAM,
        consumer_group=GROUP,
        write_as="merge",
        target=NAMES["parallel"],
        waves=2,
        capture={"split_rows": 500, "merge_rows": 50, "allowed_skew_seconds": 0},
        read={"max_active_tis_per_dagrun": 4},
    )

    replay() >> create_stream >> backfill >> replay.override(task_id="replay_on")() >> deliver
