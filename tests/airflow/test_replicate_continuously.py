"""A replication in rounds: each round takes what was committed, and the task ends by its deadline or a person's act."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG
from pyspark.sql import SparkSession

from tests.airflow.replicated_shop import CONN_ID, REPLICATION, ReplicatedShop
from tests.airflow.runs import Outcome
from tests.until import wait_until
from tidemark.hooks.source_connection import source_address
from tidemark.operators.replications import CreateReplicationOperator
from tidemark.replication.model.replication import Actor, LogPosition, ReplicationState
from tidemark.replication.sources.open import open_source
from tidemark.replication.worker.lifecycle import let_drain
from tidemark.task_groups.replicate import replicate_continuously

pytestmark = [pytest.mark.airflow, pytest.mark.spark]
RunDag = Callable[..., Outcome]


def continuously(seconds: float, every: float = 1.0, include: Any = ("shop.orders", "shop.visits")) -> DAG:
    with DAG("continuously", schedule=None) as dag:
        made = CreateReplicationOperator(
            task_id="create", replication=REPLICATION, source_conn_id=CONN_ID, target="mirror", include=list(include)
        )
        rounds = {"run_for_seconds": seconds, "every_seconds": every}
        made >> replicate_continuously("run", replication=REPLICATION, rounds=rounds)
    return dag


def test_rounds_take_what_is_committed_while_they_run_until_a_pause(
    run_dag: RunDag, shop: ReplicatedShop, spark: SparkSession, warm_spark: Path
) -> None:
    copied = run_dag(continuously(0.0))
    assert (copied.state, copied.returned("run.prepare")) == ("success", ["shop.orders", "shop.visits"])
    with acting(lambda: _changes_and_a_pause(shop)):
        done = run_dag(continuously(3600.0))
    assert (done.state, shop.status().replication.state) == ("success", ReplicationState.PAUSED)
    told = done.returned("run.rounds")
    assert told["rounds"] >= 2
    assert told["events"] == told["captured"] > 0
    assert set(told["objects"]) == {"shop.orders", "shop.visits"}
    shop.require_same(spark)


def _changes_and_a_pause(shop: ReplicatedShop) -> None:
    """Each act waits until the one before has come to the targets."""
    for text in ("UPDATE shop.orders SET status = 'paid'", "DELETE FROM shop.visits"):
        shop.change(text)
        committed = open_source(source_address(CONN_ID)).current_position()
        wait_until(partial(_have_all, shop, committed), seconds=300)
    let_drain(shop.hook.open_store(), REPLICATION, by=Actor("ana", "enough"))


def _have_all(shop: ReplicatedShop, committed: LogPosition) -> bool:
    applied = [one.object.applied for one in shop.status().objects]
    return all(position is not None and position >= committed for position in applied)


@contextmanager
def acting(act: Callable[[], None]) -> Iterator[None]:
    """Beside what is done in the context. Raises the act's error."""
    with ThreadPoolExecutor(1) as pool:
        acted = pool.submit(act)
        yield
        acted.result(0)


def test_quiet_rounds_start_no_jvm(run_dag: RunDag, shop: ReplicatedShop, warm_spark: Path) -> None:
    assert run_dag(continuously(0.0)).state == "success"
    run_dag(continuously(0.1))
    began = warm_spark.read_text().count("\n")
    quiet = run_dag(continuously(10.0, every=0.2))
    assert (quiet.state, quiet.returned("run.rounds")["events"]) == ("success", 0)
    assert quiet.returned("run.rounds")["rounds"] >= 2
    assert warm_spark.read_text().count("\n") == began


def test_an_object_that_fails_is_left_out_of_later_rounds_and_turns_the_run_red(
    run_dag: RunDag, shop: ReplicatedShop, spark: SparkSession, warm_spark: Path
) -> None:
    assert run_dag(continuously(0.0)).state == "success"
    shop.change("UPDATE shop.orders SET promised_for = 'infinity' WHERE id = 7")
    shop.change("DELETE FROM shop.visits")
    failed = run_dag(continuously(8.0))
    told = failed.returned("run.rounds")
    assert (failed.state, failed.task("run.finish"), list(told["failed"])) == ("failed", "failed", ["shop.orders"])
    assert told["objects"]["shop.visits"]["events"] > 0
