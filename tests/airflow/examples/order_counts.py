"""A report that Spark computes only if its table has changed."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import DAG, Asset

from tidemark.operators.cached_query import CachedQueryOperator

# [START order_counts]
with DAG(
    "order_counts", start_date=datetime(2026, 1, 1, tzinfo=UTC), schedule="@hourly", catchup=False
) as order_counts:
    count = CachedQueryOperator(
        task_id="count",
        sql="SELECT status, count(*) AS n FROM shop.orders GROUP BY status ORDER BY status",
        outlets=[Asset("order_counts")],
    )
# [END order_counts]
