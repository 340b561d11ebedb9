"""Files of orders and prices, loaded by a statement and by a pipe; each file once."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG, Asset

from tidemark.notifications.troubled_pipe import PipeTroubleNotifier
from tidemark.operators.alter_pipe import AlterPipeOperator
from tidemark.operators.copy_into import CopyIntoOperator
from tidemark.operators.pipes import CreatePipeOperator, RefreshPipeOperator, RunPipeOperator
from tidemark.sensors.pipes import PipePendingSensor

# [START copy_orders]
with DAG(
    "copy_orders",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    schedule="@daily",
    catchup=False,
    max_active_runs=1,
    params={"landing": "/data/landing"},
) as copy_orders:
    copy = CopyIntoOperator(
        task_id="copy",
        sql="""
            COPY INTO shop.orders_copied
            FROM '{{ params.landing }}/'
            PATTERN = '.*[.]csv'
            FILE_FORMAT = (TYPE = CSV SKIP_HEADER = 1)
            ON_ERROR = CONTINUE
        """,
        outlets=[Asset("orders_copied")],
    )
# [END copy_orders]

# [START load_orders]
with DAG(
    "load_orders",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    schedule="@hourly",
    catchup=False,
    max_active_runs=1,
    params={"landing": "/data/landing"},
) as load_orders:
    create = CreatePipeOperator(
        task_id="create",
        pipe="shop.orders_pipe",
        copy_statement="""
            COPY INTO shop.orders_loaded
            FROM '{{ params.landing }}/'
            FILE_FORMAT = (TYPE = CSV SKIP_HEADER = 1)
        """,
    )

    wait = PipePendingSensor(
        task_id="wait", pipe="shop.orders_pipe", deferrable=True, poke_interval=60, timeout=3000, soft_fail=True
    )

    load = RunPipeOperator(task_id="load", pipe="shop.orders_pipe", outlets=[Asset("orders_loaded")])

    create >> wait >> load
# [END load_orders]

# [START refresh_orders]
with DAG(
    "refresh_orders",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    schedule=None,
    params={"prefix": "", "modified_after": ""},
) as refresh_orders:
    refresh = RefreshPipeOperator(
        task_id="refresh",
        pipe="shop.orders_pipe",
        prefix="{{ params.prefix }}",
        modified_after="{{ params.modified_after }}",
    )
# [END refresh_orders]

# [START pause_orders]
with DAG(
    "pause_orders", start_date=datetime(2026, 1, 1, tzinfo=UTC), schedule=None, params={"action": "pause"}
) as pause_orders:
    alter = AlterPipeOperator(task_id="alter", pipe="shop.orders_pipe", action="{{ params.action }}")
# [END pause_orders]

# [START watch_pipes]
trouble = PipeTroubleNotifier(
    tell="airflow.providers.smtp.notifications.smtp.SmtpNotifier",
    tell_kwargs={"to": "data@example.org", "subject": "Pipes", "html_content": "{{ pipe_message }}"},
)

with DAG(
    "watch_pipes", start_date=datetime(2026, 1, 1, tzinfo=UTC), schedule="@hourly", catchup=False, max_active_runs=1
) as watch_pipes:
    run = RunPipeOperator(
        task_id="run",
        pipe="shop.orders_pipe",
        on_success_callback=trouble,  # files were skipped
        on_skipped_callback=trouble,  # the pipe is paused
        on_failure_callback=trouble,  # it is stalled
    )
# [END watch_pipes]
