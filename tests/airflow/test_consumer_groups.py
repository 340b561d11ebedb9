"""Consumer groups by operators: made once, paused, resumed, reset; the alert for those that are late. No Spark."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from tests.airflow.runs import Outcome
from tidemark.change_streams.model.change_streams import ChangeStreamOptions, WatchedTable
from tidemark.change_streams.worker.definitions import create_change_stream
from tidemark.change_streams.worker.groups import create_group, group_status
from tidemark.control.store import ControlStore
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.model.streams import TableRef
from tidemark.operators.consumer_groups import AlterConsumerGroupOperator, CreateConsumerGroupOperator
from tidemark.sensors.consumer_groups import ConsumerGroupStaleSensor

pytestmark = pytest.mark.airflow
RunDag = Callable[..., Outcome]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, airflow_home: Path) -> ControlStore:
    """A store with a change stream that was made 20 of its 24 hours ago."""
    url = f"sqlite:///{tmp_path}/control.db"
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", url)
    made = datetime.now(UTC) - timedelta(hours=20)
    create_change_stream(
        ControlStore(url, clock=lambda: made),
        name="s",
        tables=(WatchedTable(TableRef("db.t", "file:///t", "t1"), ("id",), None, 0),),
        everything=False,
        options=ChangeStreamOptions(),
        log_path=str(tmp_path / "log"),
    )
    return TidemarkHook().open_store()


def run(run_dag: RunDag, kind: type[Any], **arguments: Any) -> Outcome:
    with DAG("one_task", schedule=None) as dag:
        kind(task_id="it", **arguments)
    return run_dag(dag)


def test_a_group_is_made_once_and_paused_and_resumed(run_dag: RunDag, store: ControlStore) -> None:
    of_group = {"change_stream": "s", "consumer_group": "g"}
    made = run(run_dag, CreateConsumerGroupOperator, **of_group, start="now").returned("it")
    assert run(run_dag, CreateConsumerGroupOperator, **of_group, start="earliest").returned("it") == made
    for action, paused in (("pause", True), ("pause", True), ("resume", False)):
        done = run(run_dag, AlterConsumerGroupOperator, **of_group, action=action, start="{{ none }}")
        assert done.state == "success", "None as a template renders it is left out"
        assert group_status(store, "s", "g").group.paused is paused


def test_a_reset_group_is_another_one(run_dag: RunDag, store: ControlStore) -> None:
    before = create_group(store, "s", "g", "now")
    done = run(run_dag, AlterConsumerGroupOperator, change_stream="s", consumer_group="g", action="reset", start="now")
    assert done.state == "success"
    assert group_status(store, "s", "g").group.uid != before.uid


@pytest.mark.parametrize(
    "arguments",
    [
        {"action": "{{ 'reset' }}"},
        {"action": "pause", "start": "{{ 'now' }}"},
        {"action": "{{ 'stop' }}"},
        {"action": "reset", "start": "{{ '3' }}"},
        {"action": "reset", "start": "2020-01-01T00:00:00Z"},
        {"action": "pause", "consumer_group": "another"},
    ],
)
def test_what_makes_no_sense_changes_nothing(run_dag: RunDag, store: ControlStore, arguments: dict[str, Any]) -> None:
    before = create_group(store, "s", "g", "now")
    asked = {"change_stream": "s", "consumer_group": "g", **arguments}
    assert run(run_dag, AlterConsumerGroupOperator, **asked).state == "failed"
    assert group_status(store, "s", "g").group == before


def test_groups_with_little_time_are_told_of(run_dag: RunDag, store: ControlStore) -> None:
    create_group(store, "s", "late", "now")
    look = {"timeout": 0, "soft_fail": True}
    (told,) = run(run_dag, ConsumerGroupStaleSensor, **look).returned("it")
    assert (told["change_stream"], told["consumer_group"]) == ("s", "late")
    assert 3.9 < told["hours_left"] <= 4
    assert run(run_dag, ConsumerGroupStaleSensor, change_stream="s", hours_left="3", **look).task("it") == "skipped"
    (asked,) = run(run_dag, ConsumerGroupStaleSensor, change_stream="s", hours_left=5, **look).returned("it")
    assert asked["consumer_group"] == "late"


@pytest.mark.parametrize(
    "arguments",
    [
        {"consumer_group": "{{ 'late' }}"},
        {"change_stream": "no_such"},
        {"hours_left": "{{ 'soon' }}"},
        {"hours_left": "{{ -1 }}"},
    ],
)
def test_a_look_that_cannot_be_taken_fails(run_dag: RunDag, store: ControlStore, arguments: dict[str, Any]) -> None:
    create_group(store, "s", "late", "now")
    assert run(run_dag, ConsumerGroupStaleSensor, timeout=0, **arguments).state == "failed"
