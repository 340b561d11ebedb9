"""A table that is recreated from time to time, and its stream, which continues by key."""

from __future__ import annotations

from airflow.sdk import DAG

from tidemark.operators.rebase import RebaseStreamOperator

# [START rebase_orders]
with DAG("rebase_orders", schedule=None, params={"why": ""}) as rebase_orders:
    rebase = RebaseStreamOperator(task_id="rebase", stream="order_changes", keys=["id"], why="{{ params.why }}")
# [END rebase_orders]
