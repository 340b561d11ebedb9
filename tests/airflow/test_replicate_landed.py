"""Runs of a DAG capture and apply what others have landed: envelopes of a Debezium, and files of a Datastream."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG

from tests.airflow.runs import Lake, Outcome
from tests.databases.debezium.landed import land
from tests.databases.event_files.dropped import drop, event
from tidemark.operators.replications import CreateReplicationOperator
from tidemark.task_groups.replicate import replicate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.airflow, pytest.mark.spark]
RunDag = Callable[..., Outcome]


def put_envelopes(place: Path, number: int, rows: list[tuple[int, str]], gone: int | None) -> None:
    source = {"connector": "mysql", "name": "s", "db": "d", "table": "t", "file": "b.1", "pos": 4, "ts_ms": 5}
    told = [
        {"key": {"id": key}, "value": {"op": "u", "source": source, "before": None, "after": {"id": key, "v": text}}}
        for key, text in rows
    ]
    if gone is not None:
        value = {"op": "d", "source": source, "before": {"id": gone}, "after": None}
        told.append({"key": {"id": gone}, "value": value})
    land(place, f"{number}.jsonl", told)


def put_event_files(place: Path, number: int, rows: list[tuple[int, str]], gone: int | None) -> None:
    first = number * 100
    lines = [event(first + key, key, payload={"id": key, "v": text}) for key, text in rows]
    if gone is not None:
        lines.append(event(first + 99, gone, change_type="DELETE", is_deleted=True))
    drop(place, f"d_t/2024/05/01/10/{number:02d}/a.jsonl", lines)


@pytest.mark.parametrize(
    ("kind", "put", "extra"),
    [("debezium", put_envelopes, {}), ("event_files", put_event_files, {"wait_seconds": "0"})],
    ids=["debezium", "event_files"],
)
def test_runs_capture_and_apply_what_is_there(
    run_dag: RunDag,
    spark: SparkSession,
    warm_spark: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    put: Callable[[Path, int, list[tuple[int, str]], int | None], None],
    extra: dict[str, Any],
) -> None:
    place = tmp_path / "landed"
    lake = Lake.of_its_own(spark, tmp_path, monkeypatch.setenv, {})
    said = json.dumps({"location": str(place), **extra})
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_LANDED", json.dumps({"conn_type": kind, "extra": said}))
    with DAG(f"replicate_{kind}", schedule=None) as dag:
        create = CreateReplicationOperator(
            task_id="create",
            replication="shop",
            source_conn_id="shop_landed",
            target="mirror",
            include=["d"],
        )
        create >> replicate("replicate", replication="shop")
    put(place, 1, [(1, "a"), (2, "b")], None)
    first = run_dag(dag)
    assert first.state == "success"
    assert first.returned("replicate.prepare") == []
    assert first.returned("replicate.capture")["events"] == 2
    put(place, 2, [(2, "c"), (3, "d")], 1)
    assert run_dag(dag).state == "success"
    frame = spark.read.format("delta").load(str(lake.root / "mirror" / "d_t"))
    assert sorted(map(tuple, frame.select("id", "v").collect())) == [(2, "c"), (3, "d")]
    began = warm_spark.read_text().count("\n")
    assert run_dag(dag).state == "success"
    assert warm_spark.read_text().count("\n") == began  # nothing new starts no JVM
