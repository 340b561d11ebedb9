"""Replications are defined, prepared, paused and dropped by tasks that start no Spark; bad input writes nothing."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from tests.airflow.monitored_replications import REASON, made_in
from tests.airflow.replicated_shop import CONN_ID, REPLICATION, ReplicatedShop
from tests.airflow.runs import Outcome
from tests.control.replication_model import ME
from tidemark import metrics
from tidemark.errors import InvalidArgument
from tidemark.operators.replication_lifecycle import PauseReplicationOperator, ResumeReplicationOperator
from tidemark.operators.replication_objects import RequestBackfillOperator
from tidemark.operators.replications import (
    CreateReplicationOperator,
    DropReplicationOperator,
    FinishReplicationOperator,
    PrepareReplicationOperator,
)
from tidemark.replication.model.replication import InvalidValues, ObjectState, ReplicationState, WriteMode
from tidemark.replication.worker.definitions import get_replication, list_replications
from tidemark.replication.worker.objects import objects_of, request_backfill

pytestmark = pytest.mark.airflow
RunDag = Callable[..., Outcome]


def create(**more: Any) -> CreateReplicationOperator:
    arguments = {"replication": REPLICATION, "source_conn_id": CONN_ID, "target": "mirror", "include": "shop", **more}
    return CreateReplicationOperator(task_id="create", **arguments)


def dag_of(*kinds: Callable[[], Any]) -> DAG:
    """The tasks one after another."""
    with DAG("replication_operators", schedule=None) as dag:
        tasks = [kind() for kind in kinds]
        for before, after in itertools.pairwise(tasks):
            before >> after
    return dag


def prepare(**more: Any) -> PrepareReplicationOperator:
    return PrepareReplicationOperator(task_id="prepare", replication=REPLICATION, **more)


def test_the_first_preparation_makes_publication_and_slot_and_a_second_changes_nothing(
    run_dag: RunDag, shop: ReplicatedShop
) -> None:
    first = run_dag(dag_of(create, prepare))
    assert first.state == "success"
    names = ["shop.customers", "shop.order_items", "shop.orders", "shop.visits"]
    assert first.returned("prepare") == names
    store = shop.hook.open_store()
    replication = get_replication(store, REPLICATION)
    assert replication.state is ReplicationState.RUNNING
    assert shop.in_source() == ([replication.slot], [replication.publication])
    assert {one.state for one in objects_of(store, REPLICATION)} == {ObjectState.PENDING}
    again = run_dag(dag_of(create, prepare))
    assert (again.state, again.returned("prepare")) == ("success", names)
    assert again.returned("create")["created"] is False
    assert shop.in_source() == ([replication.slot], [replication.publication])
    assert get_replication(store, REPLICATION) == replication


def test_another_selection_is_taken_up_by_the_next_run(run_dag: RunDag, shop: ReplicatedShop) -> None:
    run_dag(dag_of(lambda: create(include=["shop.orders", "shop.visits"]), prepare))
    more = run_dag(dag_of(lambda: create(include='["shop.orders", "shop.customers"]'), prepare))
    assert more.returned("prepare") == ["shop.customers", "shop.orders"]
    assert shop.sql("SELECT tablename FROM pg_publication_tables ORDER BY 1") == [("customers",), ("orders",)]


def test_options_set_the_names_of_targets_and_the_modes_of_single_tables(run_dag: RunDag, shop: ReplicatedShop) -> None:
    options = {"target_table": "raw_{table}", "append_only_tables": "shop.visits", "fetch_rows": 7}
    assert run_dag(dag_of(lambda: create(options=options), prepare)).state == "success"
    kept = objects_of(shop.hook.open_store(), REPLICATION)
    assert {one.name.table: one.target.name for one in kept} == {
        name: f"mirror.raw_{name}" for name in ("customers", "order_items", "orders", "visits")
    }
    assert {one.name.table for one in kept if one.mode is WriteMode.APPEND_ONLY} == {"visits"}
    assert {one.name.table for one in kept if one.mode is WriteMode.MERGE} >= {"customers", "orders"}


def test_a_table_without_identity_is_not_published_and_the_others_are(run_dag: RunDag, shop: ReplicatedShop) -> None:
    shop.sql("CREATE TABLE shop.keyless (a integer)")
    done = run_dag(dag_of(create, prepare))
    assert done.state == "success"
    assert "shop.keyless" not in done.returned("prepare")
    kept = {one.name.table: one for one in objects_of(shop.hook.open_store(), REPLICATION)}["keyless"]
    assert kept.state is ObjectState.UNSUPPORTED
    assert "REPLICA IDENTITY FULL" in str(kept.problem)
    shop.sql("INSERT INTO shop.keyless VALUES (1)")
    shop.sql("UPDATE shop.keyless SET a = 2")  # the application goes on as before


def test_what_is_wrong_with_the_source_is_said_with_what_mends_it_and_nothing_is_made(
    run_dag: RunDag, shop: ReplicatedShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    import json
    import os

    shop.sql("DROP ROLE IF EXISTS clerk")
    shop.sql("CREATE ROLE clerk LOGIN PASSWORD 'clerk'")
    connection = json.loads(os.environ["AIRFLOW_CONN_SHOP_DATABASE"])
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DATABASE", json.dumps({**connection, "login": "clerk", "password": "clerk"}))
    done = run_dag(dag_of(create, prepare))
    assert (done.state, done.task("create"), done.task("prepare")) == ("failed", "success", "failed")
    kept = get_replication(shop.hook.open_store(), REPLICATION)
    assert kept.state is ReplicationState.NOT_STARTED
    assert "REPLICATION" in str(kept.error)
    assert shop.in_source() == ([], [])


def test_a_paused_replication_skips_its_run_and_a_resumed_one_goes_on(run_dag: RunDag, shop: ReplicatedShop) -> None:
    run_dag(dag_of(lambda: create(options={"backfill": False}), prepare))
    paused = run_dag(
        dag_of(lambda: PauseReplicationOperator(task_id="pause", replication=REPLICATION, why="holidays"), prepare)
    )
    assert paused.returned("pause")["state"] == "paused"
    assert (paused.state, paused.task("prepare")) == ("success", "skipped")
    resumed = run_dag(dag_of(lambda: ResumeReplicationOperator(task_id="resume", replication=REPLICATION), prepare))
    assert (resumed.returned("resume")["state"], resumed.task("prepare")) == ("running", "success")


def test_invalid_values_max_events_and_hidden_columns_may_be_changed_later_and_the_mode_may_not(
    run_dag: RunDag, shop: ReplicatedShop
) -> None:
    run_dag(dag_of(create))
    options = {"invalid_values": "null", "max_events": 10, "mask_columns": "shop.orders.note, *.*.phone"}
    for _ in range(2):
        done = run_dag(dag_of(lambda: create(mode="append_only", options=options)))
        assert done.returned("create")["created"] is False
    kept = get_replication(shop.hook.open_store(), REPLICATION).options
    assert (kept.invalid_values, kept.max_events, kept.mode) == (InvalidValues.NULL, 10, WriteMode.MERGE)
    assert kept.mask_columns == ("shop.orders.note", "*.*.phone")


def test_backfills_are_asked_for_and_stopped_by_name_and_no_name_asks_for_none(
    run_dag: RunDag, shop: ReplicatedShop
) -> None:
    run_dag(dag_of(lambda: create(options={"backfill": "false"}), prepare))

    def request(objects: Any, action: str = "start") -> Outcome:
        return run_dag(
            dag_of(
                lambda: RequestBackfillOperator(
                    task_id="request", replication=REPLICATION, objects=objects, action=action
                ),
                lambda: FinishReplicationOperator(task_id="finish", replication=REPLICATION),
            )
        )

    assert request("[]").task("request") == "skipped"
    asked = request("shop.orders, shop.visits")
    assert asked.returned("request")["objects"] == {"shop.orders": "pending", "shop.visits": "pending"}
    assert asked.returned("finish")["objects"]["shop.orders"]["state"] == "pending"
    assert request(["shop.orders"], "stop").returned("request")["objects"] == {"shop.orders": "stopped"}
    assert request("shop.nothing").task("request") == "failed"
    with pytest.raises(InvalidArgument, match="start, restart, stop"):
        request("shop.orders", "begin")


def test_dropping_takes_slot_and_publication_with_it(run_dag: RunDag, shop: ReplicatedShop) -> None:
    run_dag(dag_of(create, prepare))

    def drop(**more: Any) -> DropReplicationOperator:
        return DropReplicationOperator(task_id="drop", replication=REPLICATION, **more)

    assert run_dag(dag_of(drop)).returned("drop") is True
    assert shop.in_source() == ([], [])
    assert list_replications(shop.hook.open_store()) == ()
    assert run_dag(dag_of(drop)).returned("drop") is False
    assert run_dag(dag_of(lambda: drop(if_exists=False))).state == "failed"


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ({"replication": " "}, "name"),
        ({"include": ["a.b.c.d"]}, "include"),
        ({"options": {"speed": 1}}, "there is no option speed"),
        ({"options": {"invalid_values": "round"}}, "must be one of fail, null"),
        ({"options": {"mask_columns": "shop.orders"}}, r"schema\.table\.column"),
        ({"options": {"hash_columns": ["shop.orders.id"]}}, "has none. Give it the extra"),
        ({"mode": "upsert"}, "must be one of merge, append_only"),
        ({"target": "s3://ana:secret@bucket/lake"}, "password"),
        ({"source_conn_id": "nobody_made_it"}, "nobody_made_it"),
    ],
)
def test_bad_input_is_named_and_nothing_is_defined(
    run_dag: RunDag, shop: ReplicatedShop, bad: dict[str, Any], problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    from airflow.sdk.exceptions import AirflowNotFoundException

    with pytest.raises((InvalidArgument, AirflowNotFoundException), match=problem):
        create(**bad).execute({"ti": _instance()})  # type: ignore[arg-type]
    assert list_replications(shop.hook.open_store()) == ()


@pytest.mark.parametrize("fails", ["true", True])
def test_a_run_may_fail_where_a_table_waits_for_a_backfill_that_nobody_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool | str
) -> None:
    from tidemark.errors import BackfillNeeded, ObjectsFailed

    monitored = made_in(tmp_path).fill()
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", monitored.url)
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DATABASE", "postgres://nobody:known@127.0.0.1:1/nowhere")
    finish = FinishReplicationOperator(task_id="finish", replication="shop")
    assert finish.execute({"ti": _instance()})["objects"]["shop.stock"]["needs_backfill"] == REASON  # type: ignore[arg-type]
    finish.fail_on_needs_backfill = fails
    with pytest.raises(BackfillNeeded, match=r"shop\.stock") as needed:
        finish.execute({"ti": _instance()})  # type: ignore[arg-type]
    assert REASON in str(needed.value)
    request_backfill(finish.hook.open_store(), "shop", ["shop.stock"], by=ME)
    assert finish.execute({"ti": _instance()})["state"] == "running"  # type: ignore[arg-type]
    finish.fail_on_failed = fails
    with pytest.raises(ObjectsFailed, match=r"shop\.payments .*went away"):
        finish.execute({"ti": _instance()})  # type: ignore[arg-type]


@pytest.mark.parametrize("days", ["a week", -1, "nan"])
def test_days_that_are_none_are_named_before_a_job_is_made(shop: ReplicatedShop, days: float | str) -> None:
    from tidemark.operators.replication_retention import ExpireEventLogOperator

    operator = ExpireEventLogOperator(task_id="expire", replication="shop", keep_days="{{ params.days }}")
    operator.keep_days = days  # as Airflow renders it
    with pytest.raises(InvalidArgument, match="keep_days"):
        operator.execute({"ti": _instance()})  # type: ignore[arg-type]


def _instance() -> Any:
    from types import SimpleNamespace

    return SimpleNamespace(dag_id="d", run_id="r", task_id="create", map_index=-1)


def test_the_end_of_a_run_warns_of_the_slot_of_a_paused_replication_and_of_a_source_that_is_away(
    run_dag: RunDag, shop: ReplicatedShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    import json
    import os

    pause = PauseReplicationOperator(task_id="pause", replication=REPLICATION, at_once=True)
    run_dag(dag_of(lambda: create(options={"backfill": False}), prepare))
    pause.execute({"ti": _instance()})  # type: ignore[arg-type]

    def finish() -> dict[str, Any]:
        task = FinishReplicationOperator(task_id="finish", replication=REPLICATION)
        return task.execute({"ti": _instance()})  # type: ignore[arg-type]

    told: list[dict[str, Any]] = []
    monkeypatch.setattr(metrics, "replicated", lambda name, **facts: told.append({"name": name, **facts}))
    assert (finish()["state"], finish()["alerts"]) == ("paused", [])
    assert (told[0]["name"], told[0]["failed_objects"]) == (REPLICATION, 0)
    (slot,), _ = shop.in_source()
    shop.sql(f"SELECT pg_drop_replication_slot('{slot}')")
    assert [f"{slot} is gone" in one for one in finish()["alerts"]] == [True]
    connection = json.loads(os.environ["AIRFLOW_CONN_SHOP_DATABASE"])
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DATABASE", json.dumps({**connection, "port": 1}))
    (away,) = finish()["alerts"]
    assert "could not be looked at" in away
