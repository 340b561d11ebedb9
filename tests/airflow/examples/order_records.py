"""A shop's orders, read from a change stream partition by partition: a mirror, and the same steps written out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG, TriggerRule

from tidemark.operators.backfill import BackfillTableOperator
from tidemark.operators.capture import CaptureChangesOperator
from tidemark.operators.consumer_groups import AlterConsumerGroupOperator, CreateConsumerGroupOperator
from tidemark.operators.partitions import (
    CommitPartitionsOperator,
    FinishPartitionsOperator,
    PlanPartitionsOperator,
    ReadPartitionOperator,
)
from tidemark.sensors.consumer_groups import ConsumerGroupStaleSensor
from tidemark.task_groups.change_stream_partitions import change_stream_partitions

# [START order_mirror]
with DAG(
    "order_mirror",
    schedule=timedelta(minutes=15),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    allowed_run_types=["scheduled", "manual"],
) as order_mirror:
    # [START backfill]
    backfill = BackfillTableOperator(
        task_id="backfill",
        change_stream="order_records",
        consumer_group="mirror",
        table="shop.orders",
        target="shop.orders_mirror",
    )
    # [END backfill]

    deliver = change_stream_partitions(
        "deliver",
        change_stream="order_records",
        consumer_group="mirror",
        write_as="merge",
        target="shop.orders_mirror",
        table="shop.orders",
        waves=2,
        read={"max_active_tis_per_dagrun": 4},
    )

    backfill >> deliver
# [END order_mirror]

# [START order_history]
with DAG("order_history", schedule=None, catchup=False, max_active_runs=1) as order_history:
    reads = {"change_stream": "order_records", "consumer_group": "history"}

    # [START group]
    group = CreateConsumerGroupOperator(
        task_id="group", change_stream="order_records", consumer_group="history", start="earliest"
    )
    # [END group]

    # [START capture]
    capture = CaptureChangesOperator(task_id="capture", change_stream="order_records", max_rows=10_000_000)
    # [END capture]

    # [START wave]
    plan = PlanPartitionsOperator(task_id="plan", **reads, chunks_per_task=8)

    read = ReadPartitionOperator.partial(
        task_id="read",
        change_stream="order_records",
        write_as="append",
        target="shop.order_changes",
        map_index_template="{{ task.bundle.range }}",
    ).expand(bundle=plan.output)

    commit = CommitPartitionsOperator(task_id="commit", **reads, trigger_rule=TriggerRule.ALL_DONE)
    # [END wave]

    # [START finish]
    finish = FinishPartitionsOperator(task_id="finish", **reads, trigger_rule=TriggerRule.ALL_DONE)
    # [END finish]

    group >> capture >> plan >> read >> commit >> finish
# [END order_history]

# [START reset_order_history]
with DAG("reset_order_history", schedule=None, params={"start": "now"}) as reset_order_history:
    again = AlterConsumerGroupOperator(
        task_id="again",
        change_stream="order_records",
        consumer_group="history",
        action="reset",
        start="{{ params.start }}",
    )
# [END reset_order_history]

# [START watch_order_records]
with DAG("watch_order_records", schedule="@hourly", catchup=False, max_active_runs=1) as watch_order_records:
    stale = ConsumerGroupStaleSensor(
        task_id="stale", change_stream="order_records", hours_left=12, timeout=0, soft_fail=True
    )
# [END watch_order_records]
