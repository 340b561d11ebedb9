"""Sensors that wait in the triggerer, run by the real task runner. No Spark: logs and offsets are plain files."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.definitions.retry_policy import RetryAction

from tests.airflow.runs import Outcome
from tests.guarantees.world import World
from tidemark.errors import InvalidArgument, SourceRecreated, StorageUnreachable, StoreBusy, StreamNotFound
from tidemark.sensors.stale import StreamStaleSensor
from tidemark.sensors.streams import StreamHasDataSensor

pytestmark = pytest.mark.airflow
RunDag = Callable[..., Outcome]


@pytest.fixture
def world(tmp_path: Path, airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Stream `s` on an empty table."""
    made = World(tmp_path, f"sqlite:///{tmp_path}/control.db")
    made.clock.now = datetime.now(UTC)
    made.stream("s")
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", made.url)
    return made


def waiting(dag_id: str, kind: type[Any] = StreamHasDataSensor, **arguments: Any) -> DAG:
    settings = {"stream": "s", "poke_interval": 0.1, "timeout": 20, "deferrable": True, **arguments}
    with DAG(dag_id, schedule=None, params={"stream": "s"}) as dag:
        kind(task_id="it", **settings)
    return dag


def test_a_sensor_defers_until_data_arrives(
    run_dag: RunDag, world: World, said: Callable[[], str], when_deferred: Callable[..., None]
) -> None:
    when_deferred(world.source.append)
    assert run_dag(waiting("defers", stream="{{ params.stream }}")).task("it") == "success"
    heard = said()
    assert "Waiting in the triggerer until" in heard
    assert "running trigger in line" in heard
    assert "'head': 1" in heard


def test_a_sensor_that_finds_data_at_once_does_not_defer(
    run_dag: RunDag, world: World, said: Callable[[], str]
) -> None:
    world.source.append()
    assert run_dag(waiting("at_once")).task("it") == "success"
    assert "Waiting in the triggerer" not in said()


def test_a_sensor_whose_time_is_over_fails_or_is_skipped(
    run_dag: RunDag, world: World, said: Callable[[], str]
) -> None:
    began = time.monotonic()
    assert run_dag(waiting("over", timeout=1)).task("it") == "failed"
    assert time.monotonic() - began < 60
    assert "Sensor has timed out after 1" in said()
    assert run_dag(waiting("over_softly", timeout=1, soft_fail=True)).task("it") == "skipped"
    assert run_dag(waiting("never", timeout=0)).task("it") == "failed"


def test_an_error_that_waiting_cannot_help_fails_the_task_for_good(
    run_dag: RunDag, world: World, said: Callable[[], str], when_deferred: Callable[..., None]
) -> None:
    """Though it has retries: they would all meet the same."""
    when_deferred(world.source.replace)
    began = time.monotonic()
    assert run_dag(waiting("recreated", retries=3, timeout=300)).task("it") == "failed"
    assert time.monotonic() - began < 200
    heard = said()
    assert "SourceRecreated" in heard
    assert "recreate the stream" in heard
    assert "Waiting in the triggerer" in heard
    assert run_dag(waiting("nobody", stream="nobody", retries=3)).task("it") == "failed"
    assert run_dag(waiting("nobody_kindly", stream="nobody", never_fail=True)).task("it") == "skipped"


def test_a_connection_that_is_not_there_fails_the_wait(run_dag: RunDag, world: World, said: Callable[[], str]) -> None:
    assert run_dag(waiting("no_connection", conn_id="nowhere")).task("it") == "failed"
    assert "nowhere" in said()


def test_a_connection_that_is_not_there_at_the_first_look_is_no_failure_for_never_fail_and_silent_fail(
    run_dag: RunDag, world: World, said: Callable[[], str]
) -> None:
    assert run_dag(waiting("never_fails", conn_id="nowhere", never_fail=True)).task("it") == "skipped"
    assert "Waiting in the triggerer" not in said()
    assert run_dag(waiting("is_silent", conn_id="nowhere", silent_fail=True, timeout=1)).task("it") == "failed"
    heard = said()
    assert "Waiting in the triggerer" in heard
    assert "Sensor has timed out after 1" in heard


def test_an_alarm_defers_and_returns_what_it_returns_on_a_worker(
    run_dag: RunDag, world: World, said: Callable[[], str], when_deferred: Callable[..., None]
) -> None:
    away = world.root / "away"
    away.mkdir()  # not beside it, where a stream would follow
    when_deferred(lambda: world.source.path.rename(away / "table"))  # at once
    arguments = {"kind": StreamStaleSensor, "stream": None, "hours_left": "{{ 1 + 1 }}"}
    ran = run_dag(waiting("alarm", **arguments))
    assert ran.task("it") == "success"
    assert "Waiting in the triggerer" in said()
    on_worker = run_dag(waiting("alarm_on_a_worker", **{**arguments, "deferrable": False}))
    assert ran.returned("it") == on_worker.returned("it")
    assert "No table exists" in ran.returned("it")[0]["reason"]


def test_deferring_follows_airflows_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (StreamHasDataSensor, StreamStaleSensor):
        assert kind(task_id="it", stream="s").deferrable is False
        monkeypatch.setenv("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE", "True")
        assert kind(task_id="it", stream="s").deferrable is True
        assert kind(task_id="it", stream="s", deferrable=False).deferrable is False
        monkeypatch.delenv("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE")


def test_only_what_may_pass_is_tried_again() -> None:
    policy = StreamHasDataSensor(task_id="it", stream="s").retry_policy
    assert policy is not None

    def action(error: Exception) -> RetryAction:
        return policy.evaluate(error, 1, 3).action

    gone = SourceRecreated(table="t", stream="s", path="p", found="a", expected="b")
    assert action(gone) is RetryAction.FAIL
    assert action(StreamNotFound(stream="s")) is RetryAction.FAIL
    assert action(InvalidArgument(argument="a", value=1, problem="p")) is RetryAction.FAIL
    assert action(StorageUnreachable(place="p", problem="timed out")) is RetryAction.DEFAULT
    assert action(StoreBusy(url="u", problem="p")) is RetryAction.DEFAULT
    assert action(RuntimeError("of the user's own")) is RetryAction.DEFAULT
