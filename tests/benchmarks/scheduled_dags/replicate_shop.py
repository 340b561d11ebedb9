"""What the benchmark of a scheduled replication runs, every REPLICATE_EVERY seconds."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from tidemark.operators.replications import CreateReplicationOperator
from tidemark.task_groups.replicate import replicate

with DAG(
    "replicate_shop",
    schedule=timedelta(seconds=int(os.environ["REPLICATE_EVERY"])),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=3,
) as dag:
    create = CreateReplicationOperator(
        task_id="create", replication="shop", source_conn_id="shop_database", target="replicated", include=["shop"]
    )
    create >> replicate("replicate", replication="shop")
