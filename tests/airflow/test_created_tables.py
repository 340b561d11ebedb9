"""CREATE TABLE … AS SELECT … FROM a stream in tasks: the table is created, and takes the window once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from airflow.sdk import DAG

from tests.airflow.runs import Lake, Outcome
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.stream_sql import StreamSQLOperator
from tidemark.operators.streams import CreateStreamOperator
from tidemark.streams.worker.streams import get_stream

pytestmark = [pytest.mark.airflow, pytest.mark.spark]
RunDag = Callable[..., Outcome]
AT = datetime(2026, 1, 1, tzinfo=UTC)
QUERY = "AS SELECT id, name, METADATA$ACTION AS act FROM {s} WHERE id > 1"


@pytest.fixture
def stream(lake: Lake, run_dag: RunDag) -> str:
    """A stream of its own, with two rows to deliver."""
    name = f"kept_{uuid4().hex[:8]}"
    lake.create(f"ct.{name}", "id BIGINT, name STRING", row_tracking=True)
    with DAG(f"ct_{name}", schedule=None) as dag:
        CreateStreamOperator(task_id="create", stream=name, on=f"ct.{name}")
    assert run_dag(dag).state == "success"
    lake.sql("INSERT INTO {t} VALUES (1, 'one'), (2, 'two')", f"ct.{name}")
    return name


def statement(dag_id: str, sql: str, stream: str) -> DAG:
    with DAG(dag_id, schedule=None) as dag:
        StreamSQLOperator(task_id="it", sql=sql, stream=stream)
    return dag


def test_a_table_is_created_and_filled_once_and_other_runs_move_nothing(
    run_dag: RunDag, stream: str, lake: Lake, warm_spark: Path, hook: TidemarkHook, said: Callable[[], str]
) -> None:
    create = f"CREATE TABLE ct.kept {QUERY.format(s=stream)}"
    dag = statement("ct_create", create, stream)
    outcome = run_dag(dag, AT)
    first = outcome.returned("it")
    assert (first["stream"], first["from"], first["to"], first["rows"]) == (stream, 0, 1, 1)
    assert outcome.events(stream) == [first]
    lake.sql("INSERT INTO {t} VALUES (3, 'three')", f"ct.{stream}")
    assert run_dag(dag, AT).returned("it") == first
    assert run_dag(statement("ct_create_again", create, stream)).task("it") == "failed"
    assert "Object 'ct.kept' already exists" in said()
    found = run_dag(statement("ct_create_if", create.replace("TABLE", "TABLE IF NOT EXISTS"), stream))
    assert found.returned("it") == [{"status": "Table ct.kept already exists, statement succeeded."}]
    assert found.events(stream) == []
    assert lake.rows("ct.kept") == [(2, "two", "INSERT")]
    assert get_stream(hook.open_store(), stream).offset.version == 1
    assert hook.open_table("ct.kept").state().row_tracking


def test_a_consumption_creates_its_table_and_a_dry_run_does_not(
    run_dag: RunDag, stream: str, lake: Lake, warm_spark: Path
) -> None:
    def consuming(dag_id: str, *, dry_run: bool) -> DAG:
        create = f"CREATE TABLE ct.by_name PARTITIONED BY (act) {QUERY.format(s=stream)}"
        with DAG(dag_id, schedule=None) as dag:
            ConsumeStreamOperator(
                task_id="it", stream=stream, target="ct.by_name", write_as="sql", sql=create, dry_run=dry_run
            )
        return dag

    told = run_dag(consuming("ct_look", dry_run=True)).returned("it")
    assert told["windows"] == [{"stream": stream, "from": 0, "to": 1, "initial_rows": False}]
    assert not (lake.root / "ct" / "by_name").exists()
    assert run_dag(consuming("ct_take", dry_run=False)).returned("it")["rows"] == 1
    assert lake.rows("ct.by_name") == [(2, "two", "INSERT")]


def test_a_statement_that_spark_refuses_creates_nothing(
    run_dag: RunDag, stream: str, lake: Lake, warm_spark: Path, said: Callable[[], str]
) -> None:
    outcome = run_dag(statement("ct_refused", f"CREATE TABLE ct.refused AS SELECT nobody FROM {stream}", stream))
    assert outcome.task("it") == "failed"
    assert "nobody" in said()
    assert not (lake.root / "ct" / "refused").exists()
