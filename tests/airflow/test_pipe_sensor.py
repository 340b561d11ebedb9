"""The sensor of files that wait for a pipe, run by the real task runner. Location and queue are plain files."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from tests.airflow.runs import Outcome
from tests.unit.pipes.queues import Landing, Queue
from tidemark.errors import InvalidArgument
from tidemark.pipes.worker import definitions
from tidemark.sensors.pipes import PipePendingSensor

pytestmark = pytest.mark.airflow
RunDag = Callable[..., Outcome]


@pytest.fixture
def landing(tmp_path: Path, airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> Landing:
    """The pipe `p` on an empty directory."""
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", f"sqlite:///{tmp_path}/control.db")
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path))
    return Landing(tmp_path)


def waiting(dag_id: str, **arguments: Any) -> DAG:
    settings = {"pipe": "p", "poke_interval": 0.1, "timeout": 20, "deferrable": True, **arguments}
    with DAG(dag_id, schedule=None, params={"pipe": "p"}) as dag:
        PipePendingSensor(task_id="it", **settings)
    return dag


def test_a_sensor_defers_until_enough_files_are_there(
    run_dag: RunDag, landing: Landing, said: Callable[[], str], when_deferred: Callable[..., None]
) -> None:
    landing.put("a.csv")
    when_deferred(lambda: landing.put("b.csv"))
    done = run_dag(waiting("files_defers", pipe="{{ params.pipe }}", at_least="{{ 2 }}"))
    assert done.task("it") == "success"
    found = done.returned("it")
    assert (found["pipe"], found["files"], found["first"]) == ("p", 2, ["a.csv", "b.csv"])
    assert "Waiting in the triggerer until" in said()


def test_files_that_are_there_need_no_wait_and_those_that_were_taken_do_not_count(
    run_dag: RunDag, landing: Landing, said: Callable[[], str]
) -> None:
    landing.put("a.csv")
    assert run_dag(waiting("files_at_once")).returned("it")["files"] == 1
    assert run_dag(waiting("files_on_a_worker", deferrable=False)).returned("it")["files"] == 1
    Queue(landing.queue_place).put("planned", "a.csv")
    assert run_dag(waiting("files_taken", timeout=0.5, deferrable=False, soft_fail=True)).task("it") == "skipped"
    assert "Waiting in the triggerer" not in said()


def test_a_paused_pipe_waits_and_one_that_is_gone_fails_at_once(
    run_dag: RunDag, landing: Landing, said: Callable[[], str]
) -> None:
    landing.put("a.csv")
    definitions.pause_pipe(landing.store, "p", by="a test")
    assert run_dag(waiting("files_paused", timeout=0.5)).task("it") == "failed"
    assert "but it is paused" in said()
    began = time.monotonic()
    assert run_dag(waiting("files_of_nobody", pipe="nobody", retries=3, timeout=300)).task("it") == "failed"
    assert time.monotonic() - began < 60
    assert "There is no pipe nobody. These exist: p" in said()


def test_what_cannot_be_is_an_import_error() -> None:
    for wrong in ({"pipe": ""}, {"pipe": "a.b.c.d"}, {"at_least": 0}, {"at_least": "many"}, {"list_files": "maybe"}):
        with pytest.raises(InvalidArgument):
            waiting("wrong", **wrong)
