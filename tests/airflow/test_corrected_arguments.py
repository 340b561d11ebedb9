"""A typo costs one error: the task fails, is corrected and cleared, and runs; nobody has to free the stream."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from airflow.sdk import DAG

from tests.airflow.runs import Lake, Outcome
from tidemark.errors import TransactionNotFound
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.streams import CreateStreamOperator
from tidemark.operators.transaction import WriteStreamOperator
from tidemark.streams.worker.streams import get_stream, open_transaction
from tidemark.task_groups.stream_transaction import stream_transaction

pytestmark = [pytest.mark.airflow, pytest.mark.spark]
RunDag = Callable[..., Outcome]

DAY = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def source(lake: Lake) -> str:
    lake.create("c.orders", "id BIGINT, name STRING", row_tracking=True)
    for target in ("mirror", "group_mirror", "history"):
        lake.create(f"c.{target}", "id BIGINT, name STRING")
    lake.sql("INSERT INTO {t} VALUES (1, 'one'), (2, 'two')", "c.orders")
    return "c.orders"


def consuming(keys: list[str]) -> DAG:
    with DAG("corrected", schedule=None) as dag:
        create = CreateStreamOperator(task_id="create", stream="c", on="c.orders", show_initial_rows=True)
        create >> ConsumeStreamOperator(task_id="mirror", stream="c", target="c.mirror", write_as="merge", keys=keys)
    return dag


def grouped(column: str, other: str) -> DAG:
    """Texts in SQL that only Spark can refuse: keys and columns of other writes are checked when the group begins."""
    with DAG("corrected_group", schedule=None) as dag:
        create = CreateStreamOperator(task_id="create", stream="cg", on="c.orders", show_initial_rows=True)
        with stream_transaction("tx", streams="cg") as transaction:
            history = WriteStreamOperator(
                task_id="history", write_as="sql", sql=f"INSERT INTO c.history SELECT {column}, name FROM cg"
            )
            mirror = WriteStreamOperator(
                task_id="mirror", write_as="sql", sql=f"INSERT INTO c.group_mirror SELECT {other}, name FROM cg"
            )
            history >> mirror
        create >> transaction
    return dag


def test_a_wrong_key_is_corrected_and_the_cleared_run_just_runs(
    run_dag: RunDag, source: str, lake: Lake, warm_spark: Path, hook: TidemarkHook
) -> None:
    failed = run_dag(consuming(["order_id"]), at=DAY)
    assert failed.task("mirror") == "failed"
    with pytest.raises(TransactionNotFound):
        open_transaction(hook.open_store(), "c")
    lake.sql("INSERT INTO {t} VALUES (3, 'three')", source)
    done = run_dag(consuming(["id"]), at=DAY)
    assert (done.state, done.run.run_id) == ("success", failed.run.run_id)
    assert lake.rows("c.mirror") == [(1, "one"), (2, "two")]
    assert not get_stream(hook.open_store(), "c").initial_rows_pending


def test_a_group_with_two_typos_is_corrected_twice_and_what_is_written_stays_written(
    run_dag: RunDag, source: str, lake: Lake, warm_spark: Path, hook: TidemarkHook
) -> None:
    store = hook.open_store()
    failed = run_dag(grouped("order_id", "order_id"), at=DAY)
    assert (failed.task("tx.history"), failed.task("tx.rollback")) == ("failed", "success")
    with pytest.raises(TransactionNotFound):  # no target has any of it
        open_transaction(store, "cg")
    half = run_dag(grouped("id", "order_id"), at=DAY)
    assert (half.task("tx.history"), half.task("tx.mirror")) == ("success", "failed")
    assert open_transaction(store, "cg").submitted
    written = lake.version("c.history")
    done = run_dag(grouped("id", "id"), at=DAY)
    assert (done.state, done.run.run_id) == ("success", failed.run.run_id)
    assert lake.rows("c.history") == lake.rows("c.group_mirror")
    assert lake.version("c.history") == written
    (event,) = done.events("cg")
    assert event["initial_rows"]
