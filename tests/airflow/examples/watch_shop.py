"""A change stream over the tables of a shop: made, altered and dropped by tasks."""

from __future__ import annotations

from airflow.sdk import DAG

from tidemark.operators.change_streams import (
    AlterChangeStreamOperator,
    CreateChangeStreamOperator,
    DropChangeStreamOperator,
)
from tidemark.operators.expire_change_log import ExpireChangeLogOperator

# [START watch_shop]
with DAG("watch_shop", schedule=None) as watch_shop:
    create = CreateChangeStreamOperator(
        task_id="create",
        change_stream="ShopChanges",
        watch={"shop.orders": None, "shop.invoices": ["amount"]},
        keys={"shop.orders": ["id"], "shop.invoices": ["id"]},
        options={"retention_period": "7d", "value_capture_type": "NEW_ROW"},
        initial_partitions=4,
    )
# [END watch_shop]

# [START watch_less]
with DAG("watch_less", schedule=None) as watch_less:
    alter = AlterChangeStreamOperator(
        task_id="alter",
        change_stream="ShopChanges",
        watch=["shop.orders"],
        options={"exclude_delete": True},
    )
# [END watch_less]

# [START expire_shop]
with DAG("expire_shop", schedule="@daily", catchup=False, max_active_runs=1) as expire_shop:
    expire = ExpireChangeLogOperator(task_id="expire", change_stream="ShopChanges")
# [END expire_shop]

# [START forget_shop]
with DAG("forget_shop", schedule=None) as forget_shop:
    forget = DropChangeStreamOperator(task_id="forget", change_stream="ShopChanges")
# [END forget_shop]
