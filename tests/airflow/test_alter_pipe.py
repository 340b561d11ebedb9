"""A task pauses, resumes and drops a pipe, and a second run of it changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from tests.airflow.runs import Outcome
from tidemark.control.store import ControlStore
from tidemark.errors import PipeNotFound
from tidemark.operators.alter_pipe import AlterPipeOperator
from tidemark.pipes.worker.definitions import create_pipe, get_pipe, list_pipes, pause_pipe

pytestmark = pytest.mark.airflow
RunDag = Callable[..., Outcome]
NAME = "shop.orders_pipe"


@pytest.fixture
def store(airflow_home: Path, use: Callable[[str], None], tmp_path: Path) -> ControlStore:
    url = f"sqlite:///{tmp_path}/control.db"
    use(url)
    made = ControlStore(url)
    create_pipe(made, NAME, "COPY INTO shop.orders FROM '/in/'", queue=str(tmp_path / "queue"), by="a test")
    return made


def altered(run_dag: RunDag, **arguments: Any) -> Outcome:
    with DAG("altered", schedule=None) as dag:
        AlterPipeOperator(task_id="it", pipe=NAME, **arguments)
    return run_dag(dag)


def test_a_pipe_that_is_stale_is_resumed_by_force_alone(store: ControlStore, run_dag: RunDag) -> None:
    store.clock = lambda: datetime.now(UTC) - timedelta(days=20)
    pause_pipe(store, NAME, by="a test")
    assert altered(run_dag, action="resume").task("it") == "failed"
    assert get_pipe(store, NAME).paused_at is not None
    assert altered(run_dag, action="resume", force="{{ true }}").state == "success"
    assert get_pipe(store, NAME).paused_at is None


def test_a_dropped_pipe_is_gone_and_a_second_drop_changes_nothing(store: ControlStore, run_dag: RunDag) -> None:
    assert altered(run_dag, action="drop").returned("it")["existed"] is True
    assert list_pipes(store) == ()
    assert altered(run_dag, action="drop").returned("it")["existed"] is False
    assert altered(run_dag, action="drop", if_exists=False).task("it") == "failed"
    assert altered(run_dag, action="pause").task("it") == "failed"
    with pytest.raises(PipeNotFound):
        get_pipe(store, NAME)
