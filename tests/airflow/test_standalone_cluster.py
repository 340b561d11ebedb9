"""A consumption through a standalone master and worker in processes of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from airflow.sdk import DAG

from tests.airflow.runs import Lake, Outcome
from tests.airflow.standalone_cluster import CLIENT_CONF, standalone_cluster
from tests.tiers import nightly
from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.streams import CreateStreamOperator

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.e2e, nightly("a standalone cluster of its own")]


def test_a_stream_is_consumed_on_a_standalone_cluster_in_client_mode(
    run_dag: Callable[..., Outcome], lake: Lake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    extra = {"spark_conn_id": "standalone", "spark_conf": CLIENT_CONF}
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", json.dumps({"conn_type": "tidemark", "extra": extra}))
    lake.create("c.source", "id BIGINT, name STRING", row_tracking=True)
    lake.sql("INSERT INTO {t} VALUES (1, 'one'), (2, 'two')", "c.source")
    lake.create("c.mirror", "id BIGINT, name STRING")
    with DAG("standalone", schedule=None) as dag:
        create = CreateStreamOperator(task_id="create", stream="clustered", on="c.source", show_initial_rows=True)
        create >> ConsumeStreamOperator(
            task_id="consume", stream="clustered", target="c.mirror", write_as="merge", keys="id"
        )
    with standalone_cluster(tmp_path) as cluster:
        monkeypatch.setenv("AIRFLOW_CONN_STANDALONE", cluster.connection())
        assert run_dag(dag).state == "success"
        assert cluster.applications() == 0
    assert lake.rows("c.mirror") == [(1, "one"), (2, "two")]
    assert list(cluster.work.glob("app-*/*/stderr")), "no executor of the worker took part"
