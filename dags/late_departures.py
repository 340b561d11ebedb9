"""Flights that left late, kept by a DAG that starts by itself when the board has changed.

It reads a second stream on the board of `flights_stream`, with an offset of its own. Trigger this DAG once by hand,
after `flights_stream` has created the tables. That run creates the stream and takes the present board. From then on the
triggerer watches the stream, and its data starts the runs.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from flights.submit import NAMES
from tidemark.assets import stream_data_asset
from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.streams import CreateStreamOperator

STREAM = "board_departures"

with DAG(
    "late_departures",
    description="Starts when the board has changed, and keeps the flights that left late",
    schedule=[stream_data_asset(STREAM)],
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,  # an active run reads later changes, or they are announced again
    allowed_run_types=["asset_triggered", "manual"],
    default_args={"retries": 1, "retry_delay": timedelta(seconds=10)},
    doc_md=__doc__,
    tags=["tidemark", "example"],
) as dag:
    create_stream = CreateStreamOperator(
        task_id="create_stream", stream=STREAM, on=NAMES["board"], show_initial_rows=True
    )

    # A flight that left and landed between two runs shows as landed only, so the delay decides.
    keep = ConsumeStreamOperator(
        task_id="keep_late_departures",
        stream=STREAM,
        target=NAMES["late"],
        write_as="sql",
        sql=f"""
            MERGE INTO {NAMES["late"]} AS kept
            USING (
              SELECT service_date, carrier, flight, origin, dest, departure_delay
              FROM {STREAM}
              WHERE `METADATA$ACTION` = 'INSERT' AND departure_delay >= 15
            ) AS seen
            ON kept.service_date = seen.service_date AND kept.carrier = seen.carrier
              AND kept.flight = seen.flight AND kept.origin = seen.origin
            WHEN MATCHED THEN UPDATE SET *
            WHEN NOT MATCHED THEN INSERT *
        """,
    )

    create_stream >> keep
