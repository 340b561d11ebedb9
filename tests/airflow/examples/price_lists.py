"""A table that is loaded again in full every night. Only the rows that differ from the last load are delivered."""

from __future__ import annotations

from airflow.sdk import DAG

from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.keyed_streams import CreateKeyedStreamOperator

# [START price_changes]
with DAG("price_changes", schedule="@daily", catchup=False, max_active_runs=1) as price_changes:
    create = CreateKeyedStreamOperator(
        task_id="create", stream="new_prices", on="shop.prices", keys=["id"], show_initial_rows=True
    )
    keep = ConsumeStreamOperator(
        task_id="keep", stream="new_prices", target="shop.prices_mirror", write_as="merge", keys=["id"]
    )
    create >> keep
# [END price_changes]
