"""A database is replicated by runs of the group while it is written to; targets are what their tables were."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG
from pyspark.sql import SparkSession

from tests.airflow.replicated_shop import CONN_ID, REPLICATION, ReplicatedShop
from tests.airflow.runs import Outcome
from tidemark.operators.replication_capture import CaptureEventsOperator
from tidemark.operators.replication_lifecycle import PauseReplicationOperator, ResumeReplicationOperator
from tidemark.operators.replication_objects import RequestBackfillOperator
from tidemark.operators.replication_retention import ExpireEventLogOperator
from tidemark.operators.replications import CreateReplicationOperator, DropReplicationOperator
from tidemark.replication.model.replication import ObjectState, ReplicationState
from tidemark.task_groups.replicate import replicate

pytestmark = [pytest.mark.airflow, pytest.mark.spark]
RunDag = Callable[..., Outcome]


def replicating(before: Any = None, **create: Any) -> DAG:
    with DAG("replicating", schedule=None) as dag:
        made = CreateReplicationOperator(
            task_id="create",
            **{"replication": REPLICATION, "source_conn_id": CONN_ID, "target": "mirror", "include": "shop", **create},
        )
        group = replicate("run", replication=REPLICATION)
        if before is None:
            made >> group
        else:
            made >> before() >> group
    return dag


def states(outcome: Outcome, task_id: str) -> dict[str, str]:
    """State by the label that the map index shows."""
    found = outcome.run.get_task_instances()
    return {str(one.rendered_map_index): str(one.state) for one in found if one.task_id == f"run.objects.{task_id}"}


def ran(outcome: Outcome) -> list[str]:
    """The tasks that were not skipped, each as often as it ran."""
    return sorted(one.task_id for one in outcome.run.get_task_instances() if one.state != "skipped")


EVERY = ("shop.order_items", "shop.visits")


def test_backfill_then_changes_then_a_pause_while_the_source_is_written_to(
    run_dag: RunDag, shop: ReplicatedShop, spark: SparkSession, warm_spark: Path
) -> None:
    few = {"include": ["shop.order_items", "shop.visits"]}
    with shop.written_to(seed=1):
        first = run_dag(replicating(**few))
        assert first.state == "success"
        assert states(first, "backfill") == dict.fromkeys(EVERY, "success")
        shop.require_same(spark)
        second = run_dag(replicating(**few))
        assert second.state == "success"
        steps = ["prepare", "capture", "capture_ended", "apply", "finish", "all_done"]
        assert ran(second) == sorted(["create", *(f"run.{step}" for step in steps)])
        assert set(second.returned("run.apply")["objects"]) == set(EVERY)
        shop.require_same(spark)
        applied = {one.object.applied for one in shop.status().objects}
        assert applied == {shop.status().replication.captured}
        asked = run_dag(
            replicating(
                lambda: RequestBackfillOperator(task_id="request", replication=REPLICATION, objects="shop.order_items"),
                **few,
            )
        )
        assert states(asked, "backfill") == states(asked, "apply") == {"shop.order_items": "success"}
        assert set(asked.returned("run.apply")["objects"]) == {"shop.visits"}
        shop.require_same(spark)
        run_dag(_one(CaptureEventsOperator(task_id="capture", replication=REPLICATION)))
        draining = run_dag(_one(PauseReplicationOperator(task_id="pause", replication=REPLICATION)))
        assert draining.returned("pause")["state"] == "draining"
        held = shop.status().replication.captured
        drained = run_dag(replicating(**few))
        assert drained.returned("run.finish")["state"] == "paused"
        assert {one.object.applied for one in shop.status().objects} == {held}
        shop.require_same(spark)
        idle = run_dag(replicating(**few))
        assert (idle.state, idle.task("run.prepare")) == ("success", "skipped")
        run_dag(_one(ResumeReplicationOperator(task_id="resume", replication=REPLICATION)))
        resumed = run_dag(replicating(**few))
        assert resumed.state == "success"
        assert shop.status().replication.captured > held
        shop.require_same(spark)
    quiet = run_dag(replicating(**few))
    began = warm_spark.read_text().count("\n")
    again = run_dag(replicating(**few))
    assert (quiet.state, again.state) == ("success", "success")
    assert warm_spark.read_text().count("\n") == began  # nothing new starts no JVM
    assert shop.require_same(spark)["order_items"] == shop.sql("SELECT count(*) FROM shop.order_items")[0][0]
    run_dag(_one(DropReplicationOperator(task_id="drop", replication=REPLICATION)))
    assert shop.in_source() == ([], [])


def _one(task: Any) -> DAG:
    with DAG("one_of_replication", schedule=None) as dag:
        dag.add_task(task)
    return dag


def test_an_object_that_fails_stops_no_other_and_is_taken_up_when_it_is_mended(
    run_dag: RunDag, shop: ReplicatedShop, spark: SparkSession, warm_spark: Path
) -> None:
    shop.change("UPDATE shop.orders SET promised_for = 'infinity' WHERE id = 7")
    failed = run_dag(replicating(exclude=["shop.visits"]))
    assert failed.state == "failed"
    others = {"shop.customers": "success", "shop.order_items": "success"}
    assert states(failed, "backfill") == {**others, "shop.orders": "failed"}
    assert states(failed, "apply") == {**others, "2": "upstream_failed"}  # it did not run, so it has no label
    assert (failed.task("run.finish"), failed.task("run.all_done")) == ("failed", "upstream_failed")
    kept = {one.object.name.text: one.object for one in shop.status().objects}["shop.orders"]
    assert kept.state is ObjectState.FAILED
    assert "promised_for" in str(kept.problem)
    shop.change("UPDATE shop.orders SET promised_for = NULL WHERE id = 7")
    mended = run_dag(replicating(exclude=["shop.visits"]))
    assert mended.state == "success"
    assert states(mended, "backfill")["shop.orders"] == "success"
    shop.require_same(spark)


def test_an_object_whose_apply_fails_turns_the_run_red_and_is_tried_again_by_itself(
    run_dag: RunDag, shop: ReplicatedShop, spark: SparkSession, warm_spark: Path
) -> None:
    few = {"include": ["shop.orders", "shop.visits"]}
    assert run_dag(replicating(**few)).state == "success"
    shop.change("UPDATE shop.orders SET promised_for = 'infinity' WHERE id = 7")
    shop.change("DELETE FROM shop.visits")
    failed = run_dag(replicating(**few))
    assert (failed.state, failed.task("run.apply"), failed.task("run.finish")) == ("failed", "success", "failed")
    assert "promised_for" in failed.returned("run.apply")["failed"]["shop.orders"]
    assert set(failed.returned("run.apply")["objects"]) == {"shop.visits"}
    again = run_dag(replicating(**few))
    assert (again.state, states(again, "apply")) == ("failed", {"shop.orders": "failed"})
    assert set(again.returned("run.apply")["objects"]) == {"shop.visits"}
    shop.change("UPDATE shop.orders SET promised_for = NULL WHERE id = 7")
    mended = run_dag(replicating(lambda: RequestBackfillOperator(
        task_id="request", replication=REPLICATION, objects="shop.orders"), **few))  # fmt: skip
    assert (mended.state, states(mended, "apply")) == ("success", {"shop.orders": "success"})
    shop.require_same(spark)


def test_a_source_that_is_away_does_not_stop_what_was_captured_from_being_applied(
    run_dag: RunDag, shop: ReplicatedShop, spark: SparkSession, warm_spark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import json
    import os

    create = {"include": ["shop.orders"]}
    assert run_dag(replicating(**create)).state == "success"
    shop.change("DELETE FROM shop.orders WHERE id % 3 = 0")
    run_dag(_one(CaptureEventsOperator(task_id="capture", replication=REPLICATION)))
    with monkeypatch.context() as away:
        connection = json.loads(os.environ["AIRFLOW_CONN_SHOP_DATABASE"])
        away.setenv("AIRFLOW_CONN_SHOP_DATABASE", json.dumps({**connection, "port": 1}))
        failed = run_dag(replicating(**create))
    assert (failed.state, failed.task("run.prepare"), failed.task("run.capture")) == (
        "failed", "failed", "upstream_failed",
    )  # fmt: skip
    assert failed.returned("run.apply")["objects"]["shop.orders"]["rows"]["deleted"] == 20
    assert shop.status().replication.state is ReplicationState.FAILED
    assert spark.read.format("delta").load(shop.status().objects[0].object.target.path).count() == 40
    shop.change("UPDATE shop.orders SET status = 'paid' WHERE id % 3 = 1")  # a newer batch of events
    healed = run_dag(replicating(**create))
    assert (healed.state, shop.status().replication.state) == ("success", ReplicationState.RUNNING)
    expire = ExpireEventLogOperator(task_id="expire", replication=REPLICATION, keep_days="0")
    expired = run_dag(_one(expire)).returned("expire")
    assert (expired["events"] > 0, expired["held"]) == (True, {})
