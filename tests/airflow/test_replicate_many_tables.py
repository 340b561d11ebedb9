"""Sixty tables of a MariaDB, and Airflow maps over two tasks: few starts of Spark, and none for quiet tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.airflow.runs import Outcome
from tests.databases.mariadb import PASSWORD, USER, BinlogServer, mariadb_or_skip
from tidemark.operators.replications import CreateReplicationOperator
from tidemark.task_groups.replicate import replicate

if TYPE_CHECKING:
    from airflow.sdk import DAG
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.timeout(900)]
RunDag = Callable[..., Outcome]
SMALL = [f"small{number}" for number in range(3)]
LARGE = ["large0", "large1"]
LATE = [f"late{number:02}" for number in range(55)]  # begin with the log
LIMIT = 2


@pytest.fixture(scope="module")
def server() -> Iterator[BinlogServer]:
    with mariadb_or_skip() as running:
        running.sql("CREATE DATABASE many")
        for table in (*SMALL, *LARGE, *LATE):
            running.sql(f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(20))", "many")
        for table in SMALL:
            running.sql(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')", "many")
        for table in LARGE:
            running.sql(f"INSERT INTO {table} SELECT seq, 'x' FROM seq_1_to_25000", "many")
            running.sql(f"ANALYZE TABLE {table}", "many")
        yield running


@pytest.fixture
def dag(server: BinlogServer, airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DAG:
    from airflow.sdk import DAG

    source = {"conn_type": "mysql", "host": "127.0.0.1", "port": server.port, "login": USER, "password": PASSWORD}
    monkeypatch.setenv("AIRFLOW_CONN_MANY_TABLES", json.dumps(source))
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path / "lake"))
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", f"sqlite:///{tmp_path}/control.db")
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", str(LIMIT))
    with DAG("replicate_many_tables", schedule=None, max_active_runs=3) as made:
        create = CreateReplicationOperator(
            task_id="create",
            replication="many",
            source_conn_id="many_tables",
            target="lake",
            include=["many.*"],
            options={"backfill_exclude": ["many.late*"]},
        )
        create >> replicate("replicate", replication="many", backfill={"partitions": 1})
    return made


def test_sixty_tables_take_few_tasks_and_few_starts_of_spark(
    dag: DAG, run_dag: RunDag, server: BinlogServer, warm_spark: Path, spark: SparkSession, tmp_path: Path
) -> None:
    def applications() -> int:
        return warm_spark.read_text().count("\n") if warm_spark.exists() else 0

    first = run_dag(dag)
    assert first.state == "success"
    assert first.returned("replicate.prepare") == [[f"many.{name}" for name in SMALL], "many.large0"]
    assert applications() == LIMIT  # of all small tables together, and of the large one
    assert run_dag(dag).returned("replicate.prepare") == ["many.large1"]
    before = applications()
    quiet = run_dag(dag)
    assert quiet.state == "success"
    assert applications() == before
    assert quiet.returned("replicate.prepare") == []
    changed = [*SMALL[:2], LARGE[0], LATE[0], LATE[-1]]
    for table in changed:
        server.sql(f"INSERT INTO {table} VALUES (100000, 'new')", "many")
    run = run_dag(dag)
    assert run.state == "success"
    assert applications() == before + 2  # a capture and an apply
    applied = run.returned("replicate.apply")
    assert {name for name, facts in applied["objects"].items() if facts["events"]} == {f"many.{t}" for t in changed}
    rows = {table: _rows(spark, tmp_path, table) for table in (*changed, *SMALL)}
    assert rows == {**dict.fromkeys(SMALL, 2), **dict.fromkeys(SMALL[:2], 3), LARGE[0]: 25_001, LATE[0]: 1, LATE[-1]: 1}


def _rows(spark: SparkSession, home: Path, table: str) -> int:
    return spark.read.format("delta").load(f"{home}/lake/lake/many_{table}").count()
