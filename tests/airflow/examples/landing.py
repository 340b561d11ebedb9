"""Log files and the rows of an own source, in landing tables within seconds; each row once."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG, Asset

from tidemark.notifications.idle_channel import ChannelIdleNotifier
from tidemark.operators.alter_channel import AlterChannelOperator
from tidemark.operators.ingest import IngestRowsOperator
from tidemark.operators.keep_channels import KeepChannelsOperator
from tidemark.sensors.channels import ChannelLagSensor

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

# [START fresh_landing]
with DAG("report_landing", start_date=datetime(2026, 1, 1, tzinfo=UTC), schedule="@hourly", catchup=False) as report:
    fresh = ChannelLagSensor(
        task_id="fresh",
        table="shop.log_lines",
        channels=["shop_logs"],
        lag_seconds=900,
        below=True,
        timeout=1_800,
        mode="reschedule",
    )
# [END fresh_landing]

# [START watch_landing]
with DAG(
    "watch_landing",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    schedule="@hourly",
    catchup=False,
    max_active_runs=1,
    on_failure_callback=ChannelIdleNotifier(
        tables="shop.log_lines",
        idle_hours=2,
        tell="airflow.providers.smtp.notifications.smtp.SmtpNotifier",
        tell_kwargs={"to": "data@example.org", "subject": "Silent channels", "html_content": "{{ idle_message }}"},
    ),
) as watch_landing:
    ChannelLagSensor(task_id="all_write", table="shop.log_lines", lag_seconds=7_200, below=True, timeout=600)
# [END watch_landing]

# [START set_landing_token]
with DAG(
    "set_landing_token", start_date=datetime(2026, 1, 1, tzinfo=UTC), schedule=None, params={"token": ""}
) as reset:
    AlterChannelOperator(
        task_id="set_token",
        table="shop.log_lines",
        channel="shop_logs",
        action="set_token",
        token="{{ params.token }}",
    )
# [END set_landing_token]
