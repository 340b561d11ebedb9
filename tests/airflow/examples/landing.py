"""Log files and the rows of an own source, in landing tables within seconds; each row once."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG, Asset

from tidemark.operators.ingest import IngestRowsOperator
from tidemark.operators.keep_channels import KeepChannelsOperator

# [START land_logs]
with DAG(
    "land_logs",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    schedule="@continuous",
    catchup=False,
    max_active_runs=1,
    params={"logs": "/var/log/shop", "seconds": 3_600},
) as land_logs:
    logs = IngestRowsOperator(
        task_id="logs",
        source="lines",
        source_options={"directory": "{{ params.logs }}", "glob": "*.jsonl"},
        table="shop.log_lines",
        channel="shop_logs",
        on_error="continue",
        seconds="{{ params.seconds }}",
        outlets=[Asset("log_lines")],
    )
# [END land_logs]

# [START keep_landing]
with DAG(
    "keep_landing", start_date=datetime(2026, 1, 1, tzinfo=UTC), schedule="@daily", catchup=False, max_active_runs=1
) as keep_landing:
    keep = KeepChannelsOperator(task_id="keep", tables="shop.log_lines", idle_days=30)
# [END keep_landing]
