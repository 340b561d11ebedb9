"""Visits that are kept clustered by customer: keyed once, then reclustered whenever it pays."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG

from tidemark.operators.auto_cluster import AutoClusterOperator

# [START cluster_visits]
with DAG(
    "cluster_visits",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    schedule="@hourly",
    catchup=False,
    max_active_runs=1,
) as cluster_visits:
    keyed = AutoClusterOperator(
        task_id="keyed", tables="shop.visits", cluster_by=["customer", "day"], depth=2, day_bytes=50 << 30
    )

    plan = AutoClusterOperator(task_id="plan", plan_only=True)

    recluster = AutoClusterOperator.partial(task_id="recluster", max_active_tis_per_dagrun=2).expand(tables=plan.output)

    keyed >> plan
# [END cluster_visits]
