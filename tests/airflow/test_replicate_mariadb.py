"""A MariaDB is replicated by runs of the example DAG while it is written to; targets are what their tables were."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.airflow.mariadb_shop import DAGS, REPLICATION, MariaDBShop
from tests.airflow.runs import Outcome
from tests.databases.mariadb import BinlogServer, mariadb_or_skip
from tidemark.model.source_address import SourceKind
from tidemark.model.spark import MARIADB_PACKAGE, POSTGRESQL_PACKAGE
from tidemark.operators._replication import jdbc_packages
from tidemark.operators.replication_lifecycle import PauseReplicationOperator, ResumeReplicationOperator
from tidemark.operators.replications import DropReplicationOperator
from tidemark.replication.model.replication import ObjectState, WriteMode

if TYPE_CHECKING:
    from airflow.sdk import DAG
    from pyspark.sql import SparkSession

    from tidemark.hooks.tidemark import TidemarkHook

pytestmark = [pytest.mark.airflow, pytest.mark.spark]
RunDag = Callable[..., Outcome]
EVERY = ("customers", "order_items", "orders", "visits")


@pytest.fixture(scope="module")
def server() -> Iterator[BinlogServer]:
    with mariadb_or_skip() as running:
        yield running


@pytest.fixture
def shop(server: BinlogServer, airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MariaDBShop:
    return MariaDBShop.at(server, tmp_path, monkeypatch.setenv)


@pytest.fixture
def dag(monkeypatch: pytest.MonkeyPatch) -> DAG:
    """The DAG as its file has it. A run with a conf leaves that in the params of the object."""
    monkeypatch.syspath_prepend(str(DAGS))
    monkeypatch.delitem(sys.modules, "replicate_database", raising=False)
    found: DAG = importlib.import_module("replicate_database").dag
    return found


def one(task: object) -> DAG:
    from airflow.sdk import DAG

    with DAG("one_of_replication", schedule=None) as dag:
        dag.add_task(task)
    return dag


def test_backfill_changes_a_backfill_anew_a_pause_and_the_end(
    dag: DAG, run_dag: RunDag, shop: MariaDBShop, spark: SparkSession, warm_spark: Path
) -> None:
    with shop.written_to(seed=1) as writer:
        with shop.copying(writer, *EVERY):
            first = run_dag(dag)
        assert first.state == "success"
        assert first.returned("replicate.prepare") == [f"shop.{name}" for name in EVERY]
        assert set(shop.require_same(spark)) == set(EVERY)
        with shop.copying(writer, "orders"):
            second = run_dag(dag, conf={"backfill": ["shop.orders"]})
        assert (second.state, second.returned("replicate.prepare")) == ("success", ["shop.orders"])
        assert second.returned("replicate.capture")["events"] > 0
        assert set(second.returned("replicate.apply")["objects"]) == {
            "shop.customers",
            "shop.order_items",
            "shop.visits",
        }
        found = shop.require_same(spark)
        assert [found[name].later for name in ("customers", "order_items")] == [0, 0]
        run_dag(one(PauseReplicationOperator(task_id="pause", replication=REPLICATION)))
        drained = run_dag(dag)
        assert drained.returned("replicate.finish")["state"] == "paused"
        run_dag(one(ResumeReplicationOperator(task_id="resume", replication=REPLICATION)))
    last = run_dag(dag)
    assert last.state == "success"
    status = shop.status()
    assert {each.object.applied for each in status.objects} == {status.replication.captured}
    assert {each.object.name.table: each.object.mode for each in status.objects}["visits"] is WriteMode.APPEND_ONLY
    assert status.replication.kind is SourceKind.MARIADB  # though the connection is of type mysql
    for table, told in shop.require_same(spark).items():
        assert table == "visits" or (told.later, told.source) == (0, told.now)
    began = warm_spark.read_text().count("\n")
    assert run_dag(dag).state == "success"
    assert warm_spark.read_text().count("\n") == began  # nothing new starts no JVM
    assert run_dag(one(DropReplicationOperator(task_id="drop", replication=REPLICATION))).state == "success"


@pytest.mark.e2e
@pytest.mark.timeout(1500)
def test_a_spark_as_users_have_it_gets_the_driver_by_itself(
    dag: DAG,
    run_dag: RunDag,
    shop: MariaDBShop,
    spark: SparkSession,
    users_spark: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dag.get_task("create"), "include", ["shop.order_items", "shop.visits"])
    with shop.written_to(seed=2) as writer, shop.copying(writer, "order_items", "visits"):
        assert run_dag(dag).state == "success"
    assert run_dag(dag).state == "success"
    assert shop.require_same(spark)["order_items"].later == 0


@pytest.mark.e2e
@pytest.mark.timeout(900)
@pytest.mark.parametrize("mode", ["submit", "warm"])
def test_a_spark_without_the_driver_is_told_of_its_package(
    dag: DAG,
    run_dag: RunDag,
    shop: MariaDBShop,
    warm_servers: None,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
) -> None:
    monkeypatch.setenv("TIDEMARK_SPARK_MODE", mode)
    without = {"spark_conf": {"spark.jars.excludes": MARIADB_PACKAGE.rpartition(":")[0]}}
    connection = {"conn_type": "tidemark", "extra": without}
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", json.dumps(connection))
    monkeypatch.setattr(dag.get_task("create"), "include", ["shop.customers"])
    assert run_dag(dag).state == "failed"
    (failed,) = [each.object for each in shop.status().objects]
    assert failed.state is ObjectState.FAILED
    assert f"spark.jars.packages={MARIADB_PACKAGE}" in str(failed.problem)


def test_a_driver_that_the_connection_names_in_another_version_is_left(
    airflow_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def packages(kind: SourceKind, named: str) -> tuple[str, ...]:
        from tidemark.hooks.tidemark import TidemarkHook

        connection = {"conn_type": "tidemark", "extra": {"spark_packages": named}}
        monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", json.dumps(connection))
        hook: TidemarkHook = TidemarkHook()
        return jdbc_packages(hook, kind)

    assert packages(SourceKind.MYSQL, "-") == packages(SourceKind.MARIADB, "a:b:1") == (MARIADB_PACKAGE,)
    assert packages(SourceKind.MARIADB, "a:b:1, org.mariadb.jdbc:mariadb-java-client:3.5.1") == ()
    assert packages(SourceKind.DEBEZIUM, "a:b:1") == ()
    assert packages(SourceKind.POSTGRESQL, "org.mariadb.jdbc:mariadb-java-client:3.5.1") == (POSTGRESQL_PACKAGE,)
