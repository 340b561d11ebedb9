"""The DAG of the benchmark of a scheduled replication: every REPLICATE_EVERY seconds, or in rounds if that is 0."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from tidemark.operators.replications import CreateReplicationOperator
from tidemark.task_groups.replicate import replicate, replicate_continuously

EVERY = int(os.environ["REPLICATE_EVERY"])

with DAG(
    "replicate_shop",
    schedule=timedelta(seconds=EVERY) if EVERY else "@continuous",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=3 if EVERY else 1,
) as dag:
    create = CreateReplicationOperator(
        task_id="create", replication="shop", source_conn_id="shop_database", target="replicated", include=["shop"]
    )
    if EVERY:
        create >> replicate("replicate", replication="shop")
    else:
        rounds = {"run_for_seconds": 240, "every_seconds": 1}
        create >> replicate_continuously("replicate", replication="shop", rounds=rounds)
