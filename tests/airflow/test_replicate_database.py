"""The example DAG over a shop's database that is written to, in a Spark as users have it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from airflow.sdk import AssetAlias

from tests.airflow.replicated_shop import DAGS, ReplicatedShop, events_of
from tests.airflow.runs import Outcome
from tests.postgresql import PostgresServer
from tests.tiers import nightly
from tidemark.assets import replicated_alias
from tidemark.operators.replication_objects import ApplyEventsOperator, BackfillObjectOperator

if TYPE_CHECKING:
    from airflow.sdk import DAG
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.airflow]
ONE, TWO = ["shop.visits"], ["shop.order_items", "shop.visits"]
RunDag = Callable[..., Outcome]


@pytest.fixture
def dag(monkeypatch: pytest.MonkeyPatch) -> DAG:
    """The DAG as its file has it."""
    monkeypatch.syspath_prepend(str(DAGS))
    found: DAG = importlib.import_module("replicate_database").dag
    return found


def test_the_graph_shows_what_waits_for_what(dag: DAG) -> None:
    upstream = {task.task_id.removeprefix("replicate."): _names(task.upstream_task_ids) for task in dag.tasks}
    assert (upstream["capture"], upstream["objects.backfill"]) == ({"prepare"}, {"prepare"})
    assert upstream["apply"] == {"prepare", "capture"}
    assert {"objects.backfill", "capture_ended"} <= upstream["objects.apply"]
    assert {"capture", "apply", "objects.apply"} <= upstream["finish"]


def _names(task_ids: set[str]) -> set[str]:
    return {name.removeprefix("replicate.") for name in task_ids}


@pytest.mark.parametrize(
    "tables", [pytest.param(ONE, marks=nightly("the other values of one test")), TWO], ids=("one", "two")
)
@pytest.mark.spark
@pytest.mark.e2e
@pytest.mark.timeout(1500)
def test_targets_are_their_tables_as_of_what_was_captured_while_the_source_is_written_to(
    dag: DAG,
    run_dag: RunDag,
    source_server: PostgresServer,
    spark: SparkSession,
    airflow_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    users_spark: str,
    tables: list[str],
) -> None:
    """A backfill and its first changes; with two tables a second run, too."""
    shop = ReplicatedShop.at(source_server, tmp_path, monkeypatch.setenv, orders=500)
    monkeypatch.setattr(dag.get_task("create"), "include", tables)
    with shop.written_to(seed=2):
        first = run_dag(dag)
        assert first.state == "success"
        copied = shop.compared(spark)
        assert [one.differs for one in copied.values()] == [0] * len(tables)
        if tables == ONE:
            return
        second = run_dag(dag)
        assert second.state == "success"
        applied = shop.compared(spark)
    assert [one.differs for one in applied.values()] == [0] * 2
    status = shop.status()
    assert {one.object.applied for one in status.objects} == {status.replication.captured}
    assert second.returned("replicate.capture")["events"] > 0
    told = events_of("shop", "shop.visits")  # the first run applies what came during its backfill, if any
    assert (told[0], told[-1]) == (("backfill", first.run.run_id), ("apply", second.run.run_id))
    assert set(told[1:-1]) <= {("apply", first.run.run_id)}


def test_backfills_are_asked_for_beside_it_and_its_runs_may_overlap(dag: DAG) -> None:
    backfills: DAG = importlib.import_module("replicate_database").backfills
    assert [task.task_id for task in backfills.tasks] == ["request"]
    assert (dag.max_active_runs, dag.get_task("replicate.capture").max_active_tis_per_dag) == (3, 1)
    assert dag.get_task("replicate.objects.apply").max_active_tis_per_dag is None


def test_a_task_outside_the_group_tells_of_its_object_too() -> None:
    task = BackfillObjectOperator(task_id="b", replication="shop", object_name="shop.orders")
    assert task.outlets == [AssetAlias(replicated_alias("shop"))]
    assert ApplyEventsOperator(task_id="w", replication="{{ params.name }}").outlets == []
    assert ApplyEventsOperator(task_id="v", replication="shop", objects="shop.orders", outlets=[]).outlets == []
