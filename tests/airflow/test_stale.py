"""Alarms before streams become stale: a sensor, and a notifier for callbacks and deadlines. No Spark."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG, AsyncCallback, BaseOperator

from tests.airflow.monitored import Monitored
from tests.airflow.runs import Outcome
from tests.unit.triggers.sea import Asked, Ticker
from tidemark.errors import InvalidArgument, StorageUnreachable, StreamNotFound
from tidemark.lake.storage import Storage
from tidemark.notifications.stale_stream import StaleStreamNotifier
from tidemark.sensors.stale import StreamStaleSensor

pytestmark = pytest.mark.airflow
RunDag = Callable[..., Outcome]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Monitored:
    """`customers` has 10 hours left, `returns` has lost its source, `stock` was made anew."""
    root = tmp_path_factory.mktemp("stale")
    made = Monitored(root / "lake", f"sqlite:///{root}/control.db")
    made.store.migrate()
    return made.fill()


@pytest.fixture(autouse=True)
def monitored(filled: Monitored, airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> Monitored:
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", filled.url)
    return filled


def watching(dag_id: str, **arguments: Any) -> DAG:
    with DAG(dag_id, schedule=None) as dag:
        StreamStaleSensor(task_id="watch", poke_interval=0.1, timeout=0.3, soft_fail=True, **arguments)
    return dag


def told(tmp_path: Path, text: str = "{{ stale_message }}", **arguments: Any) -> tuple[StaleStreamNotifier, Path]:
    file = tmp_path / "told"
    told_to = {"tell": "tests.airflow.notified.KeepsIt", "tell_kwargs": {"file": str(file), "text": text}}
    return StaleStreamNotifier(**told_to, **arguments), file


def test_the_sensor_wakes_for_streams_at_risk_the_most_urgent_first(run_dag: RunDag) -> None:
    ran = run_dag(watching("wakes", hours_left="{{ 12 }}"))
    assert ran.task("watch") == "success"
    found = ran.returned("watch")
    assert [one["stream"] for one in found] == ["returns", "stock", "customers"]
    assert "No table exists" in found[0]["reason"]
    assert "recreate the stream" in found[1]["reason"]
    assert 9 < found[2]["hours_left"] < 10.1
    assert found[2]["reason"] is None
    assert found[2]["stale_after"].endswith("+00:00")


def test_the_sensor_sleeps_while_there_is_time(run_dag: RunDag) -> None:
    assert run_dag(watching("sleeps", stream=["customers", "payments"], hours_left=5)).task("watch") == "skipped"


def test_a_lake_that_does_not_answer_is_no_alarm(
    run_dag: RunDag, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    def gone(self: Storage, *_: str) -> list[str]:
        raise StorageUnreachable(place=self.uri, problem="timed out")

    monkeypatch.setattr(Storage, "names", gone)
    assert run_dag(watching("unreachable", stream="customers")).task("watch") == "skipped"
    assert "The state of stream customers is unknown now" in caplog.text + capfd.readouterr().out


def test_a_stream_that_is_not_there_fails_the_sensor(run_dag: RunDag) -> None:
    with DAG("nobody", schedule=None) as dag:
        StreamStaleSensor(task_id="watch", stream="nobody", poke_interval=0.1, timeout=0.3)
    assert run_dag(dag).task("watch") == "failed"


def test_what_cannot_be_is_refused_by_name() -> None:
    for hours in ("soon", "-1", "nan"):
        with pytest.raises(InvalidArgument, match="hours_left"):
            StaleStreamNotifier(hours_left=hours)({})
    with pytest.raises(InvalidArgument, match="not a notifier class"):
        StaleStreamNotifier(tell="pathlib.Path")({})
    with pytest.raises(StreamNotFound):
        StaleStreamNotifier(stream="nobody")({})


def test_the_notifier_tells_another_in_its_own_templates(tmp_path: Path) -> None:
    notifier, file = told(tmp_path, "{{ stale_streams | length }}: {{ stale_message }}", hours_left="{{ hours }}")
    notifier({"hours": 12})
    said = file.read_text()
    assert said.startswith("3: No table exists")
    assert "Stream 'customers' on shop.customers has 9." in said or "has 10.0 hours left" in said
    assert "4 versions behind" in said


def test_nothing_is_told_where_no_stream_is_at_risk(tmp_path: Path) -> None:
    notifier, file = told(tmp_path, stream="payments")
    notifier({})
    assert not file.exists()


class Nothing(BaseOperator):
    def execute(self, context: Any) -> None: ...


def test_the_notifier_is_a_callback_of_a_task(run_dag: RunDag, tmp_path: Path) -> None:
    notifier, file = told(tmp_path, "{{ ti.task_id }} {{ stale_message }}", hours_left=12)
    with DAG("calls_back", schedule=None) as dag:
        Nothing(task_id="task", on_success_callback=notifier)
    assert run_dag(dag).state == "success"
    assert file.read_text().startswith("task No table exists")


def test_the_notifier_is_a_callback_of_a_dag(tmp_path: Path) -> None:
    """Called as the DAG processor does it."""
    import structlog
    from airflow.callbacks.callback_requests import DagCallbackRequest
    from airflow.dag_processing.processor import _execute_dag_callbacks

    notifier, file = told(tmp_path, "{{ dag.dag_id }}, {{ reason }}: {{ stale_message }}", hours_left=12)
    with DAG("a_whole", schedule=None, on_failure_callback=notifier) as dag:
        Nothing(task_id="task")
    bag: Any = SimpleNamespace(dags={dag.dag_id: dag})
    request = DagCallbackRequest(
        filepath="x.py", bundle_name="b", bundle_version=None, dag_id=dag.dag_id, run_id="r", msg="task_failure"
    )
    _execute_dag_callbacks(bag, request, structlog.get_logger())
    assert file.read_text().startswith("a_whole, task_failure: No table exists")


def test_in_a_deadline_the_notifier_looks_without_holding_up_the_triggerer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.triggers.callback import CallbackTrigger

    names, asked = Storage.names, list[Asked]()

    def slow(self: Storage, *place: str) -> list[str]:
        asked.append(Asked(threading.current_thread().name, time.monotonic()))
        time.sleep(0.4)
        return names(self, *place)

    monkeypatch.setattr(Storage, "names", slow)
    file = tmp_path / "told"
    kwargs = {
        "tell": "tests.airflow.notified.KeepsIt",
        "tell_kwargs": {"file": str(file), "text": "{{ stale_message }}"},
    }
    alert = AsyncCallback(StaleStreamNotifier, kwargs={**kwargs, "stream": "customers", "hours_left": 12})
    ticker = Ticker()

    async def run() -> list[Any]:
        ticking = asyncio.create_task(ticker.run())
        trigger = CallbackTrigger(callback_path=alert.path, callback_kwargs={**alert.kwargs, "context": {}})
        events = [event.payload async for event in trigger.run()]
        ticking.cancel()
        return events

    assert [event["state"] for event in asyncio.run(run())] == ["running", "success"]
    assert "customers" in file.read_text()
    assert len(asked) > 2  # it asks the storage several times
    assert "MainThread" not in {one.thread for one in asked}
    assert len(ticker.ticks) > len(asked)
