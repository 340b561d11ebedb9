"""A real triggerer, killed in the middle: watchers and deferred tasks on Airflow's own tables. No Spark."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from tests.dag_runs import register
from tests.guarantees.world import World
from tests.tiers import nightly
from tidemark.assets import stream_data_asset
from tidemark.sensors.streams import StreamHasDataSensor

pytestmark = [pytest.mark.airflow, pytest.mark.e2e]
QUICK = {
    "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "4",  # so long a dead one keeps what it had
    "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
}


@pytest.fixture
def world(tmp_path: Path, airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Streams `s` and `t`, each on an empty table."""
    made = World(tmp_path, f"sqlite:///{tmp_path}/control.db")
    made.clock.now = datetime.now(UTC)
    made.stream("s")
    made.stream("t", source="other")
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", made.url)
    return made


@contextmanager
def triggerer(root: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Runs while the context does; then it is killed, without a chance to clean up."""
    command = [sys.executable, "-m", "airflow", "triggerer", "--skip-serve-logs"]
    with open(root / "triggerer.log", "ab") as log:
        process = subprocess.Popen(command, env={**os.environ, **QUICK}, stdout=log, stderr=log, start_new_session=True)
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def until(found: Callable[[], Any], root: Path, seconds: float = 90) -> Any:
    """What is found, as soon as it is there."""
    end = time.monotonic() + seconds
    while not (there := found()):
        assert time.monotonic() < end, (root / "triggerer.log").read_text()[-4000:]
        time.sleep(0.2)
    return there


def watched() -> DAG:
    with DAG("woken", schedule=[stream_data_asset("s", poll_interval=1, renew_after=3600)], catchup=False) as dag:
        StreamHasDataSensor(task_id="it", stream="s")
    return dag


def asked(statement: str, *values: Any) -> list[Any]:
    """Rows of Airflow's own database."""
    import sqlalchemy as sa
    from airflow.utils.session import create_session

    with create_session() as session:
        return list(session.execute(sa.text(statement), *values).all())


def payloads() -> list[dict[str, Any]]:
    from airflow.models.asset import AssetEvent, AssetModel  # noqa: TID251 - a test looks from outside
    from airflow.utils.session import create_session

    with create_session() as session:
        found = session.query(AssetEvent).join(AssetModel, AssetModel.id == AssetEvent.asset_id)
        mine = found.filter(AssetModel.uri == stream_data_asset("s").uri).order_by(AssetEvent.id)
        return [event.extra["payload"] for event in mine]


def pause(dag: DAG, paused: bool) -> None:
    from airflow.models.dag import DagModel  # noqa: TID251 - as the switch in the page does it
    from airflow.utils.session import create_session

    with create_session() as session:
        session.query(DagModel).filter(DagModel.dag_id == dag.dag_id).update({"is_paused": paused})
    register(dag)  # the DAG processor parses it again


def watchers() -> list[int]:
    return [row[0] for row in asked("SELECT id FROM trigger WHERE classpath LIKE '%StreamDataEventTrigger'")]


def kept() -> str:
    """What Airflow keeps of the last announcement, as JSON."""
    rows = asked("SELECT value FROM asset_state_store WHERE key = 'tidemark.announced'")
    return str(rows[0][0]) if rows else ""


def deferred(end: datetime) -> Any:
    """A task that has deferred, as the worker leaves it; the id of its instance."""
    from airflow.models.dagbag import DBDagBag  # noqa: TID251 - a test stands in for the scheduler
    from airflow.models.trigger import Trigger  # noqa: TID251
    from airflow.utils.session import create_session
    from airflow.utils.state import DagRunState, TaskInstanceState
    from airflow.utils.types import DagRunTriggeredByType, DagRunType

    from tidemark.triggers.streams import StreamHasDataTrigger

    with DAG("waits", schedule=None) as dag:
        StreamHasDataSensor(task_id="it", stream="t", deferrable=True)
    register(dag)
    now = datetime.now(UTC)
    with create_session() as session:
        run = (
            DBDagBag()
            .get_latest_version_of_dag("waits", session=session)
            .create_dagrun(  # type: ignore[union-attr]
                run_id=f"manual__{now.isoformat()}",
                logical_date=now,
                data_interval=(now, now),
                run_after=now,
                run_type=DagRunType.MANUAL,
                triggered_by=DagRunTriggeredByType.TEST,
                state=DagRunState.RUNNING,
                session=session,
            )
        )
        (instance,) = run.get_task_instances(session=session)
        trigger = Trigger.from_object(StreamHasDataTrigger(stream="t", end=end, poll_interval=1))
        session.add(trigger)
        session.flush()
        instance.state, instance.trigger_id = TaskInstanceState.DEFERRED, trigger.id
        instance.next_method = "execute_complete"
        return instance.id


def instance(ti_id: Any) -> Any:
    from airflow.models.taskinstance import TaskInstance  # noqa: TID251 - a test looks from outside
    from airflow.utils.session import create_session

    with create_session() as session:
        return session.get(TaskInstance, ti_id)


@nightly("two triggerers of its own, one after the other")
def test_a_killed_triggerer_misses_no_data_and_repeats_no_announcement(world: World, tmp_path: Path) -> None:
    dag = watched()
    register(dag)
    assert watchers() == []  # the DAG is paused
    pause(dag, False)
    (watcher,) = watchers()
    register(dag)
    assert watchers() == [watcher]  # parsing again changes nothing
    waiting = deferred(datetime.now(UTC) + timedelta(minutes=10))

    world.source.append()
    with triggerer(tmp_path):
        (first,) = until(payloads, tmp_path)
        assert (first["offset"], first["head"], first["reason"]) == (0, 1, "data")
        until(kept, tmp_path)
        time.sleep(2.5)
        assert len(payloads()) == 1
        assert instance(waiting).state == "deferred"
    world.clock.now = datetime.now(UTC)
    world.consume("by hand", 0)
    world.source.append()  # while it is down
    world.sources["other"].append()
    with triggerer(tmp_path):
        second = until(lambda: payloads()[1:], tmp_path)
        assert [(one["offset"], one["head"]) for one in second] == [(1, 2)]
        resumed = until(lambda: (found := instance(waiting)).state == "scheduled" and found, tmp_path)
        assert resumed.next_kwargs["event"]["value"]["head"] == 1
        time.sleep(2.5)
        assert len(payloads()) == 2
        assert asked("SELECT 1 FROM asset_dag_run_queue WHERE target_dag_id = 'woken'")  # a run is to be made

        pause(dag, True)
        until(lambda: not watchers(), tmp_path)
        until(lambda: kept() and json.loads(kept())["watch"] == "", tmp_path)  # whoever resumes is told what is there
