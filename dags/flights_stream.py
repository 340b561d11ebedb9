"""A day of real flights flows through a stream: its mirror and its history follow the board exactly once.

Each run lets the next `days` of 2013 pass on the table `nyc.board`, hour by hour. Flights appear on the board, leave,
land, or are cancelled. One transaction then delivers all changes to two tables. The offset of the stream moves only
when both have them. A retried or cleared run delivers nothing twice. A day without changes starts no Spark job for the
stream.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Param, task

from flights.submit import NAMES, run_job
from flights.summary import replay_line, summary_lines
from tidemark.operators.streams import CreateStreamOperator
from tidemark.operators.transaction import WriteStreamOperator
from tidemark.task_groups.stream_transaction import stream_transaction

STREAM = "board_changes"

log = logging.getLogger("flights")

with DAG(
    "flights_stream",
    description="Real flights, hour by hour, through one stream into a mirror and a history",
    schedule=timedelta(minutes=15),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,  # a stream has one offset, so its runs queue up
    allowed_run_types=["scheduled", "manual"],  # an offset has no date, so nothing can be backfilled
    default_args={"retries": 1, "retry_delay": timedelta(seconds=10)},
    params={
        "days": Param(
            1, type="number", exclusiveMinimum=0, maximum=31, description="days of 2013 to replay in this run"
        )
    },
    doc_md=__doc__,
    tags=["tidemark", "example"],
) as dag:

    @task
    def replay(params: dict[str, Any]) -> dict[str, Any]:
        """Creates the tables if they are missing; a retry continues at the first hour that the board lacks."""
        replayed = run_job("replay", days=params["days"])
        log.info(replay_line(replayed))
        return replayed

    # Created once, when the board has its first rows: they are delivered first (show_initial_rows), then the changes.
    create_stream = CreateStreamOperator(
        task_id="create_stream", stream=STREAM, on=NAMES["board"], show_initial_rows=True
    )

    with stream_transaction("deliver", streams=STREAM) as deliver:
        WriteStreamOperator(
            task_id="mirror",
            target=NAMES["mirror"],
            write_as="merge",
            keys=["service_date", "carrier", "flight", "origin"],
        )
        WriteStreamOperator(task_id="history", target=NAMES["history"], write_as="append")

    @task
    def check_and_summarize(delivered: dict[str, Any]) -> dict[str, Any]:
        """Fails if the mirror differs from the source as of the offset; the source itself may have moved on."""
        report = run_job("report", version=delivered["to"])
        for line in summary_lines(report):
            log.info(line)
        if report["mirror_differs"] or report["history_differs"]:
            raise ValueError(f"The targets do not agree with the source as of version {report['version']}")
        return report

    replay() >> create_stream >> deliver >> check_and_summarize(deliver["commit"].output)
