"""The wait for an application of YARN in the triggerer. A server plays YARN."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import ErrorResponse, GetTaskStates, TaskStatesResult

from tests.played_yarn import PlayedYarn, played_yarn
from tidemark.hooks.yarn import ResourceManager
from tidemark.model.yarn import YarnApplication
from tidemark.triggers.yarn import YarnApplicationTrigger


@pytest.fixture
def yarn() -> Iterator[PlayedYarn]:
    with played_yarn() as running:
        yield running


def trigger(yarn: PlayedYarn, application: str, seconds: float = 30, *, own: bool = True) -> YarnApplicationTrigger:
    end = datetime.now(UTC) + timedelta(seconds=seconds)
    made = YarnApplicationTrigger(
        application=application,
        job_id="one",
        addresses=[yarn.address],
        end=end.isoformat(),
        poll_interval=0.05,
        user="ann",
        own=own,
    )
    name, arguments = made.serialize()
    assert name == "tidemark.triggers.yarn.YarnApplicationTrigger"
    return YarnApplicationTrigger(**arguments)  # as another triggerer makes it


async def event_of(waits: YarnApplicationTrigger) -> dict[str, Any]:
    async for event in waits.run():
        return dict(event.payload)
    raise AssertionError("it ended without an event")


def test_it_fires_when_the_application_has_ended(yarn: PlayedYarn) -> None:
    name = yarn.run(1)

    async def ended_later() -> dict[str, Any]:
        waits = asyncio.create_task(event_of(trigger(yarn, name)))
        await asyncio.sleep(0.3)
        assert not waits.done()
        yarn.end(name, "FAILED", "FAILED")
        return await waits

    event = asyncio.run(ended_later())
    assert datetime.fromisoformat(event.pop("end")).tzinfo is not None
    assert event == {"status": "ended", "application": name, "problem": "FAILED", "awaited": "one"}


def test_a_manager_that_hangs_is_asked_again_and_keeps_no_loop_waiting(
    yarn: PlayedYarn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asking: list[str] = []

    class Noted(ResourceManager):
        def application(self, application_id: str) -> YarnApplication:
            asking.append(threading.current_thread().name)
            return super().application(application_id)

    monkeypatch.setattr("tidemark.triggers.yarn.ResourceManager", lambda at, user: Noted(at, seconds=0.2))
    name = yarn.run(1)
    yarn.silent = True

    async def hangs() -> dict[str, Any]:
        waits = asyncio.create_task(event_of(trigger(yarn, name)))
        while len(asking) < 3:
            await asyncio.sleep(0.01)
        yarn.silent = False
        yarn.end(name)
        return await waits

    assert asyncio.run(hangs())["status"] == "ended"
    assert threading.main_thread().name not in asking
    assert "does not answer" in capsys.readouterr().out


def test_it_fires_at_its_end_and_for_what_waiting_cannot_change(yarn: PlayedYarn) -> None:
    name = yarn.run(1)
    assert asyncio.run(event_of(trigger(yarn, name, seconds=0)))["status"] == "timeout"
    assert asyncio.run(event_of(trigger(yarn, name, seconds=0, own=False)))["awaited"] is None
    assert asyncio.run(event_of(trigger(yarn, "application_9_0009")))["status"] == "unknown"
    yarn.answers[f"/ws/v1/cluster/apps/{name}"] = (403, "no")
    assert asyncio.run(event_of(trigger(yarn, name)))["status"] == "refused"


def test_an_end_waits_for_no_manager_that_keeps_the_polls_waiting(
    yarn: PlayedYarn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", '{"conn_type": "tidemark"}')
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path))
    name = yarn.run(1)

    async def ended(hanging: PlayedYarn) -> float:
        polls = [asyncio.create_task(event_of(trigger(hanging, name))) for _ in range(20)]
        while len(hanging.asked) < 8:
            await asyncio.sleep(0.01)
        began = time.monotonic()
        await trigger(yarn, name).on_kill()
        seconds = time.monotonic() - began
        for poll in polls:
            poll.cancel()
        return seconds

    with played_yarn() as hanging:
        hanging.silent = True
        assert asyncio.run(ended(hanging)) < 9
    assert yarn.apps[name]["state"] == "KILLED"
    assert (tmp_path / "_tidemark" / "cluster_jobs" / "one" / "cancel").exists()


class Supervisor:
    """The triggerer's way to Airflow, which knows the state of one task, or does not answer."""

    def __init__(self, state: str | None, map_index: int) -> None:
        name = "it" if map_index < 0 else f"it_{map_index}"
        self.answer = TaskStatesResult(task_states={} if state is None else {"r": {name: state}})

    def send(self, message: GetTaskStates) -> TaskStatesResult:
        assert (message.dag_id, message.task_ids, message.run_ids) == ("d", ["it"], ["r"])
        if self.answer.task_states == {"r": {"it": "away"}}:
            raise AirflowRuntimeError(ErrorResponse(error=ErrorType.API_SERVER_ERROR))
        return self.answer


@pytest.mark.parametrize(
    ("state", "map_index", "ended"),
    [("deferred", -1, False), ("deferred", 3, False), ("away", -1, False), ("failed", -1, True), (None, -1, True)],
)
def test_a_driver_is_left_if_its_task_is_still_deferred(
    state: str | None,
    map_index: int,
    ended: bool,
    yarn: PlayedYarn,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Airflow ends the triggers of a triggerer that stalled as if persons had ended the tasks."""
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", '{"conn_type": "tidemark"}')
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path))
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", Supervisor(state, map_index), raising=False)
    name = yarn.run(1)
    waits = trigger(yarn, name)
    waits.task_instance = SimpleNamespace(dag_id="d", task_id="it", run_id="r", map_index=map_index)
    asyncio.run(waits.on_kill())
    assert (yarn.apps[name]["state"] == "KILLED") is ended
    assert (tmp_path / "_tidemark" / "cluster_jobs" / "one" / "cancel").exists() is ended


@pytest.mark.parametrize("gone", ["the manager", "the connection"])
def test_an_end_by_one_way_does_not_need_the_other(
    yarn: PlayedYarn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gone: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = "fs" if gone == "the connection" else "tidemark"
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", f'{{"conn_type": "{kind}"}}')
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path))
    name = yarn.run(1)
    if gone == "the manager":
        yarn.answers[f"/ws/v1/cluster/apps/{name}/state"] = (500, "{}")
    asyncio.run(trigger(yarn, name).on_kill())
    assert (yarn.apps[name]["state"] == "KILLED") is (gone == "the connection")
    assert (tmp_path / "_tidemark" / "cluster_jobs" / "one" / "cancel").exists() is (gone == "the manager")
    assert "A part of the end" in capsys.readouterr().out
