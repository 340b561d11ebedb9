"""New files of a directory or bucket, loaded into a table by a pipe, each once; then a stream's consumer.

The files are CSV with a header: an order's id, its customer, its amount. The Airflow variable `landing` names their
place, `/data/landing` by default. Two tables must exist:

    CREATE TABLE landing.orders (id BIGINT, customer STRING, amount DECIMAL(12, 2)) USING delta
      TBLPROPERTIES ('delta.enableRowTracking' = 'true');
    CREATE TABLE landing.order_totals (customer STRING, orders BIGINT, amount DECIMAL(22, 2)) USING delta;

Trigger `load_files` once by hand. That run creates the pipe, and loads the existing files. From then on the
triggerer lists the place every minute, and new files start the runs. Started by hand with `prefix`, `modified_after` or
`list_files`, a run loads such files, even if they failed before. Files with errors are skipped. The log has the first
error of each file, with line and column.

A run fails without a table, and succeeds with skipped files. A run of a paused pipe is skipped. In all three cases
`PipeTroubleNotifier` reports a pipe that needs your attention. Its `tell` sends the report by mail or to a chat. New
files of a paused pipe start no run, so one run a day starts without new files.

`total_orders` starts when files were loaded. It reads a stream on the table, and keeps the sums of the new orders.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG, Asset, AssetOrTimeSchedule, CronTriggerTimetable, Param

from tidemark.assets import pipe_files_asset
from tidemark.notifications.troubled_pipe import PipeTroubleNotifier
from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.pipes import CreatePipeOperator, RunPipeOperator
from tidemark.operators.streams import CreateStreamOperator

PIPE = "landing.orders_pipe"
TABLE = "landing.orders"
STREAM = "landed_orders"
LOADED = Asset("landing_orders_loaded")
TROUBLE = PipeTroubleNotifier(pipes=PIPE)
START = datetime(2026, 1, 1, tzinfo=UTC)

with DAG(
    "load_files",
    description="Starts when files have come, and once a day, and loads each file once",
    schedule=AssetOrTimeSchedule(
        timetable=CronTriggerTimetable("0 6 * * *", timezone="UTC"), assets=[pipe_files_asset(PIPE)]
    ),
    start_date=START,
    catchup=False,
    max_active_runs=1,  # a run takes all files, so runs queue up
    allowed_run_types=["scheduled", "asset_triggered", "manual"],
    default_args={"retries": 2, "retry_delay": timedelta(seconds=10)},
    params={
        "prefix": Param("", type="string", description="only files whose names begin so"),
        "modified_after": Param(
            None, type=["null", "string"], format="date-time", description="only files that were modified after this"
        ),
        "list_files": Param(
            "", type="string", enum=["", "all"], description="all: load files again that were loaded before"
        ),
    },
    doc_md=__doc__,
    tags=["tidemark", "example"],
) as dag:
    create = CreatePipeOperator(
        task_id="create_pipe",
        pipe=PIPE,
        copy_statement=f"""
            COPY INTO {TABLE}
            FROM '{{{{ var.value.get("landing", "/data/landing") }}}}/'
            PATTERN = '.*[.]csv([.]gz)?'
            FILE_FORMAT = (TYPE = CSV SKIP_HEADER = 1)
            ON_ERROR = SKIP_FILE
        """,
        or_replace=True,  # the statement of this file counts; queue, history and pause stay
    )

    run = RunPipeOperator(
        task_id="run_pipe",
        pipe=PIPE,
        list_files="{{ params.list_files }}",
        prefix="{{ params.prefix }}",
        modified_after="{{ params.modified_after or '' }}",
        skip_when_empty=True,
        outlets=[LOADED],
        on_success_callback=TROUBLE,  # skipped files
        on_skipped_callback=TROUBLE,  # no file was loaded, or the pipe is paused
        on_failure_callback=TROUBLE,
    )

    create >> run

with DAG(
    "total_orders",
    description="Starts when files were loaded, and keeps the sums of their rows",
    schedule=[LOADED],
    start_date=START,
    catchup=False,
    max_active_runs=1,  # a stream has one offset, so its runs queue up
    allowed_run_types=["asset_triggered", "manual"],
    default_args={"retries": 2, "retry_delay": timedelta(seconds=10)},
    tags=["tidemark", "example"],
) as totals:
    create_stream = CreateStreamOperator(
        task_id="create_stream", stream=STREAM, on=TABLE, mode="append_only", show_initial_rows=True
    )

    total = ConsumeStreamOperator(
        task_id="total",
        stream=STREAM,
        target="landing.order_totals",
        write_as="sql",
        sql=f"""
            INSERT INTO landing.order_totals
            SELECT customer, count(*) AS orders, sum(amount) AS amount FROM {STREAM} GROUP BY customer
        """,
    )

    create_stream >> total
