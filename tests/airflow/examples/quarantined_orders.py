"""Orders that break a constraint of their mirror lie in quarantine, and the others arrive."""

from __future__ import annotations

from airflow.sdk import DAG

from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.streams import CreateStreamOperator

# [START quarantined_orders]
with DAG("quarantined_orders", schedule=None, max_active_runs=1) as quarantined_orders:
    create = CreateStreamOperator(task_id="create", stream="checked_orders", on="shop.orders", show_initial_rows=True)

    checked = ConsumeStreamOperator(
        task_id="checked",
        stream="checked_orders",
        target="shop.orders_checked",
        write_as="merge",
        keys=["id"],
        quarantine="shop.bad_orders",
    )

    create >> checked
# [END quarantined_orders]
