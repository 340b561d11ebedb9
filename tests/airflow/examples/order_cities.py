"""A view that joins a shop's orders with its customers, kept as a table."""

from __future__ import annotations

from airflow.sdk import DAG

from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.view_streams import CreateViewStreamOperator

# [START order_cities]
with DAG("order_cities", schedule="@hourly", catchup=False, max_active_runs=1) as order_cities:
    create = CreateViewStreamOperator(
        task_id="create", stream="city_changes", on="shop.order_cities", show_initial_rows=True
    )
    keep = ConsumeStreamOperator(
        task_id="keep", stream="city_changes", target="shop.cities", write_as="merge", keys=["order_id"]
    )
    create >> keep
# [END order_cities]
