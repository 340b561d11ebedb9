"""The stream of a shop's orders, delivered to a mirror and a history: by hand and on a schedule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from tidemark.assets import stream_data_asset
from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.streams import CreateStreamOperator
from tidemark.sensors.streams import StreamHasDataSensor

SETTINGS = {
    "catchup": False,
    "max_active_runs": 1,
    "start_date": datetime(2026, 1, 1, tzinfo=UTC),
    "default_args": {"retries": 5, "retry_delay": timedelta(seconds=1)},
}


def deliver(**settings: object) -> ConsumeStreamOperator:
    return ConsumeStreamOperator(
        task_id="deliver",
        stream="orders",
        target=["shop.mirror", "shop.history"],
        write_as="order_writes:mirror_then_history",
        **settings,
    )


with DAG("create", schedule=None, **SETTINGS):
    CreateStreamOperator(task_id="create", stream="orders", on="shop.orders")

with DAG("by_hand", schedule=None, **SETTINGS):
    deliver()

with DAG("in_a_hurry", schedule=None, **SETTINGS):
    deliver(execution_timeout=timedelta(seconds=45), retries=0)

with DAG("when_there_is_data", schedule=None, **SETTINGS):
    StreamHasDataSensor(task_id="wait", stream="orders", deferrable=True, poke_interval=2) >> deliver()

with DAG("on_schedule", schedule=timedelta(seconds=20), is_paused_upon_creation=True, **SETTINGS):
    deliver()

with DAG(
    "by_new_data", schedule=[stream_data_asset("orders", poll_interval=5)], is_paused_upon_creation=True, **SETTINGS
):
    deliver()
