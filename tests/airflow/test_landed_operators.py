"""A replication of landed envelopes is defined and prepared by tasks like that of a database, and starts no Spark."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from tests.airflow.runs import Outcome
from tests.databases.debezium.landed import land
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.model.source_address import SourceKind
from tidemark.operators.replication_lifecycle import RecoverReplicationOperator
from tidemark.operators.replications import (
    CreateReplicationOperator,
    DropReplicationOperator,
    FinishReplicationOperator,
    PrepareReplicationOperator,
)
from tidemark.replication.model.replication import ReplicationState
from tidemark.replication.worker.definitions import get_replication
from tidemark.replication.worker.objects import objects_of

pytestmark = pytest.mark.airflow
RunDag = Callable[..., Outcome]


def dag_of(*kinds: Callable[[], Any]) -> DAG:
    with DAG("landed_operators", schedule=None) as dag:
        tasks = [kind() for kind in kinds]
        for before, after in itertools.pairwise(tasks):
            before >> after
    return dag


def create() -> CreateReplicationOperator:
    return CreateReplicationOperator(
        task_id="create", replication="shop", source_conn_id="shop_envelopes", target="mirror", include=["d.t"]
    )


@pytest.fixture
def landed(airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "landed"
    extra = json.dumps({"location": str(place)})
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_ENVELOPES", json.dumps({"conn_type": "debezium", "extra": extra}))
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path / "lake"))
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", f"sqlite:///{tmp_path}/control.db")
    source = {"connector": "mysql", "name": "s", "db": "d", "table": "t", "file": "b.1", "pos": 4, "ts_ms": 5}
    value = {"op": "c", "source": source, "before": None, "after": {"id": 1}}
    land(place, "1.jsonl", [{"key": {"id": 1}, "value": value}])
    return place


def test_it_is_defined_prepared_reported_and_dropped(run_dag: RunDag, landed: Path) -> None:
    def prepare() -> PrepareReplicationOperator:
        return PrepareReplicationOperator(task_id="prepare", replication="shop")

    def finish() -> FinishReplicationOperator:
        return FinishReplicationOperator(task_id="finish", replication="shop")

    done = run_dag(dag_of(create, prepare, finish))
    assert (done.state, done.returned("prepare")) == ("success", [])
    (alert,) = done.returned("finish")["alerts"]
    assert "schemas.enable=true" in alert
    assert done.returned("finish")["captured"] == "beginning"
    store = TidemarkHook().open_store()
    replication = get_replication(store, "shop")
    assert (replication.kind, replication.state) == (SourceKind.DEBEZIUM, ReplicationState.RUNNING)
    assert [one.name.text for one in objects_of(store, "shop")] == ["d.t"]
    again = run_dag(dag_of(create, lambda: PrepareReplicationOperator(task_id="p", replication="shop", backfill="d.t")))
    assert (again.task("create"), again.task("p")) == ("success", "failed")  # Debezium takes snapshots, nobody else
    dropped = run_dag(dag_of(lambda: DropReplicationOperator(task_id="drop", replication="shop")))
    assert dropped.returned("drop") is True
    assert [one.name for one in landed.iterdir()] == ["1.jsonl"]


def test_a_recovery_takes_the_beginning_for_a_position(landed: Path) -> None:
    made = RecoverReplicationOperator(task_id="recover", replication="shop", position="beginning")
    assert made.position == "beginning"
