"""A table whose rows are found by their keys."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from tidemark.operators.search import AlterSearchOptimizationOperator, KeepSearchPathOperator

# [START add_search]
with DAG("add_search", start_date=datetime(2026, 1, 1, tzinfo=UTC), schedule=None) as add_search:
    add = AlterSearchOptimizationOperator(
        task_id="add", table="shop.orders", on="EQUALITY(id), SUBSTRING(status), RANGE(customer)"
    )
# [END add_search]

# [START keep_search]
with DAG(
    "keep_search", start_date=datetime(2026, 1, 1, tzinfo=UTC), schedule=timedelta(minutes=15), catchup=False
) as keep_search:
    keep = KeepSearchPathOperator(task_id="keep", table="shop.orders")
# [END keep_search]
