"""The changes of a shop's orders, kept by two statements of SQL."""

from __future__ import annotations

from airflow.sdk import DAG

from tidemark.operators.stream_sql import StreamSQLOperator

# [START orders_in_sql]
with DAG("orders_in_sql", schedule="@hourly", catchup=False, max_active_runs=1) as orders_in_sql:
    create = StreamSQLOperator(
        task_id="create", sql="CREATE STREAM IF NOT EXISTS order_log ON TABLE shop.orders SHOW_INITIAL_ROWS = TRUE"
    )
    keep = StreamSQLOperator(
        task_id="keep",
        sql="INSERT INTO shop.orders_log SELECT id, status, METADATA$ACTION FROM order_log",
        stream="order_log",
        skip_when_empty=True,
    )
    create >> keep
# [END orders_in_sql]
