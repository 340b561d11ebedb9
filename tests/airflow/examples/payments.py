"""Files that a shop's bank puts into a directory, their rows kept in a table."""

from __future__ import annotations

from airflow.sdk import DAG

from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.external_tables import RefreshExternalTableOperator
from tidemark.operators.streams import CreateStreamOperator

# [START payments]
with DAG(
    "payments", schedule="@hourly", catchup=False, max_active_runs=1, params={"landing": "/data/bank"}
) as payments:
    refresh = RefreshExternalTableOperator(
        task_id="refresh",
        external_table="bank_files",
        location="{{ params.landing }}",
        file_format="json",
        schema="id BIGINT, amount BIGINT",
        pattern="*.json",
    )
    create = CreateStreamOperator(
        task_id="create", stream="new_payments", on="bank_files", mode="insert_only", show_initial_rows=True
    )
    keep = ConsumeStreamOperator(task_id="keep", stream="new_payments", target="shop.payments", write_as="append")
    refresh >> create >> keep
# [END payments]
