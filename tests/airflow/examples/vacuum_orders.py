"""A table that is vacuumed every night; what its streams have not read yet stays."""

from __future__ import annotations

from airflow.sdk import DAG

from tidemark.operators.vacuum import VacuumTableOperator

# [START vacuum_orders]
with DAG(
    "vacuum_orders", schedule="@daily", catchup=False, max_active_runs=1, params={"dry_run": False}
) as vacuum_orders:
    vacuum = VacuumTableOperator(
        task_id="vacuum", table="shop.orders", max_extension_days=14, dry_run="{{ params.dry_run }}"
    )
# [END vacuum_orders]
