"""A shop's orders: a mirror that a stream keeps, a delivery to two tables at once, and what is done by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG, task

from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.replay import ReplayWindowOperator
from tidemark.operators.streams import AdvanceStreamOperator, CreateStreamOperator, DropStreamOperator
from tidemark.operators.transaction import WriteStreamOperator
from tidemark.sensors.streams import StreamHasDataSensor
from tidemark.task_groups.stream_transaction import stream_transaction

# [START mirror_orders]
with DAG(
    "mirror_orders",
    schedule=timedelta(hours=1),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    allowed_run_types=["scheduled", "manual"],
) as mirror_orders:
    # [START create]
    create = CreateStreamOperator(task_id="create", stream="order_changes", on="shop.orders", show_initial_rows=True)
    # [END create]

    # [START wait]
    wait = StreamHasDataSensor(
        task_id="wait", stream="order_changes", deferrable=True, poke_interval=30, timeout=3000, soft_fail=True
    )
    # [END wait]

    # [START consume]
    mirror = ConsumeStreamOperator(
        task_id="mirror", stream="order_changes", target="shop.orders_mirror", write_as="merge", keys=["id"]
    )
    # [END consume]

    create >> wait >> mirror
# [END mirror_orders]

# [START deliver_orders]
with DAG("deliver_orders", schedule=None, catchup=False, max_active_runs=1) as deliver_orders:
    create_deliveries = CreateStreamOperator(
        task_id="create", stream="order_deliveries", on="shop.orders", show_initial_rows=True
    )

    @task
    def check() -> None:
        """Raise an error here if the second table must not be written."""

    with stream_transaction("deliver", streams="order_deliveries") as deliver:
        # [START write]
        open_orders = WriteStreamOperator(
            task_id="open_orders",
            target="shop.open_orders",
            write_as="merge",
            keys=["id"],
        )
        history = WriteStreamOperator(
            task_id="history",
            write_as="sql",
            sql="INSERT INTO shop.orders_history SELECT id, status, METADATA$ACTION FROM order_deliveries",
        )
        # [END write]
        open_orders >> check() >> history

    create_deliveries >> deliver
# [END deliver_orders]

# [START replay_orders]
with DAG("replay_orders", schedule=None, params={"run_id": ""}) as replay_orders:
    again = ReplayWindowOperator(
        task_id="again",
        stream="order_changes",
        run="{{ params.run_id }}",
        target="shop.orders_copy",
        write_as="append",
    )
# [END replay_orders]

# [START skip_orders]
with DAG("skip_orders", schedule=None, params={"to": "now", "why": ""}) as skip_orders:
    skip = AdvanceStreamOperator(task_id="skip", stream="order_changes", to="{{ params.to }}", why="{{ params.why }}")
# [END skip_orders]

# [START forget_orders]
with DAG("forget_orders", schedule=None) as forget_orders:
    forget = DropStreamOperator(task_id="forget", stream="order_changes")
# [END forget_orders]
