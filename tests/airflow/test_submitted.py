"""One consumption through a real spark-submit: the archive, the user's function beside the DAG file, the task log."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from airflow.sdk import DAG

from tests.airflow.runs import Lake, Outcome
from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.streams import CreateStreamOperator

pytestmark = [pytest.mark.airflow, pytest.mark.spark]


def test_a_function_beside_the_dag_file_runs_in_a_submitted_job(
    run_dag: Callable[..., Outcome],
    lake: Lake,
    airflow_home: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_CANARY", "postgres://ana:s3cr3t@h/db")
    monkeypatch.setenv("SHOP_URL", "here")
    monkeypatch.setenv("TIDEMARK_DRIVER_ENVIRONMENT", "SHOP_*, COVERAGE_*")
    lake.create("t2.orders", "id BIGINT, name STRING", row_tracking=True)
    lake.create("t2.names", "id BIGINT, name STRING")
    with DAG("submitted", schedule=None) as dag:
        create = CreateStreamOperator(task_id="create", stream="submitted", on="t2.orders", at=0)
        create >> ConsumeStreamOperator(
            task_id="consume", stream="submitted", target="t2.names", write_as="stream_functions:keep_inserted"
        )
    lake.sql("INSERT INTO {t} VALUES (1, 'one'), (2, 'two')", "t2.orders")
    done = run_dag(dag)
    said = capfd.readouterr().out
    assert done.state == "success", said
    assert lake.rows("t2.names") == [(1, "one"), (2, "two")]
    assert done.returned("consume")["rows"] == 2
    assert "statement 1 of 1" in said
    assert "INFO SparkContext" not in said
    (seen,) = re.findall(r"sees (.*)", said)
    assert {"SHOP_URL", "PATH", "PYSPARK_PYTHON"} <= set(seen.split())
    assert "AIRFLOW" not in seen
    assert "AIRFLOW_CONN_CANARY" in next(line for line in caplog.text.splitlines() if "Left out" in line)
    assert "s3cr3t" not in said + caplog.text
    assert not (lake.root / "_tidemark/jobs").exists()
    assert not (lake.root / "_tidemark/archives").exists()
