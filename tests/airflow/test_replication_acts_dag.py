"""The DAG `replication_acts` does the one act that the trigger form names, on a store and a source without Spark."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import ParamValidationError

from tests.airflow.replicated_shop import CONN_ID, DAGS, REPLICATION, ReplicatedShop
from tests.airflow.runs import Outcome
from tests.control.change_stream_model import Clock
from tests.control.replication_model import ME, World
from tests.postgresql import PostgresServer
from tidemark.control.store import ControlStore
from tidemark.hooks.replication import event_log_path, source_of
from tidemark.model.source_address import SourceKind
from tidemark.replication.model.replication import ObjectState, ReplicationOptions, ReplicationState, Selection
from tidemark.replication.worker import lifecycle
from tidemark.replication.worker.definitions import create_replication, get_replication, list_replications
from tidemark.replication.worker.status import history

pytestmark = pytest.mark.airflow
Act = Callable[..., Outcome]
TASKS = ("pause", "resume", "backfill", "stop_backfill", "recover", "drop")


@pytest.fixture
def act(run_dag: Callable[..., Outcome]) -> Act:
    """Answers of the form. A DAG that was run in this process keeps them, so each run has its own."""
    assert (DAGS / "replication_acts.py").exists()

    def answered(**answers: Any) -> Outcome:
        dag: DAG = importlib.reload(importlib.import_module("replication_acts")).dag
        return run_dag(dag, conf=answers)

    return answered


@pytest.fixture
def world(airflow_home: Path, use: Callable[[str], None], tmp_path: Path) -> World:
    url = f"sqlite:///{tmp_path}/control.db"
    use(url)
    world = World(ControlStore(url), tmp_path / "event_logs", clock=Clock(datetime.now(UTC)))
    world.start("s.orders", "s.items")
    world.capture()
    world.backfill("s.orders")
    return world


def done(outcome: Outcome) -> dict[str, str]:
    return {name: state for name in TASKS if (state := outcome.task(name)) != "skipped"}


def test_a_run_does_the_one_act_that_is_chosen(world: World, act: Act) -> None:
    paused = act(action="pause", replication="r", why="holidays")
    assert (paused.state, done(paused)) == ("success", {"pause": "success"})
    assert world.replication.state is ReplicationState.PAUSED
    assert history(world.store, "r")[0].by.why == "holidays"
    assert done(act(action="resume", replication="r")) == {"resume": "success"}
    assert world.replication.state is ReplicationState.RUNNING
    asked = act(action="backfill", replication="r", tables=["s.orders"])
    assert asked.returned("backfill")["objects"] == {"s.orders": "pending"}
    act(action="stop_backfill", replication="r", tables=["s.orders", "s.items"])
    assert {one.state for one in world.objects()} == {ObjectState.STOPPED}


def test_an_answer_that_is_missing_fails_the_run_before_any_act(world: World, act: Act) -> None:
    kept = (world.replication, world.objects())
    for answers in (
        {"action": "backfill", "replication": "r"},
        {"action": "drop", "replication": "r"},
        {"action": "drop", "replication": "r", "sure": "another"},
    ):
        failed = act(**answers)
        assert (failed.state, failed.task("act"), failed.task("drop")) == ("failed", "failed", "upstream_failed")
    unknown = act(action="pause", replication="nothing")
    assert (unknown.state, done(unknown)) == ("failed", {"pause": "failed"})
    refused = act(action="recover", replication="r", position="yesterday")
    assert refused.task("recover") == "failed"
    assert (world.replication, world.objects()) == kept


@pytest.mark.parametrize("answers", [{"action": "begin", "replication": "r"}, {"action": "pause"}])
def test_the_form_takes_no_other_action_and_wants_a_name(act: Act, answers: dict[str, Any]) -> None:
    with pytest.raises(ParamValidationError):
        act(**answers)


def test_the_form_recovers_and_drops_with_the_source(
    source_server: PostgresServer, airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Act
) -> None:
    shop = ReplicatedShop.at(source_server, tmp_path, monkeypatch.setenv, orders=1)
    store = shop.hook.open_store()
    create_replication(
        store,
        name=REPLICATION,
        kind=SourceKind.POSTGRESQL,
        source_conn_id=CONN_ID,
        selection=Selection(include=("shop",)),
        options=ReplicationOptions(target="mirror"),
        event_log=event_log_path(shop.hook),
        by=ME,
    )
    lifecycle.start(store, REPLICATION, by=ME)
    source = source_of(get_replication(store, REPLICATION))
    known = {"system_id": source.system_id(), "position": source.current_position()}
    lifecycle.validated(store, REPLICATION, **known, by=ME)
    lifecycle.failed_permanently(store, REPLICATION, error="the slot is lost", by=ME)
    assert act(action="recover", replication=REPLICATION).returned("recover")["state"] == "running"
    assert len(shop.in_source()[0]) == 1
    assert done(act(action="drop", replication=REPLICATION, sure=REPLICATION)) == {"drop": "success"}
    assert (shop.in_source(), list_replications(store)) == (([], []), ())
    assert act(action="drop", replication=REPLICATION, sure=REPLICATION).state == "failed"
