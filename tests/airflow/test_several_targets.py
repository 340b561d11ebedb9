"""ConsumeStreamOperator with several targets: one job reads the window once and writes all of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from tests.airflow.runs import Lake, Outcome
from tidemark.errors import InvalidArgument
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.streams import CreateStreamOperator
from tidemark.streams.worker.streams import get_stream

pytestmark = [pytest.mark.airflow, pytest.mark.spark]
RunDag = Callable[..., Outcome]

MIRROR = {"target": "several.mirror", "write_as": "merge", "keys": ["id"]}
HISTORY = {"target": "{{ params.history }}", "write_as": "append", "quarantine": "several.bad"}
DELETES = "INSERT INTO several.deleted SELECT id FROM several WHERE METADATA$ACTION = 'DELETE'"
DELETED = {"write_as": "sql", "sql": DELETES}
COLUMNS = "id BIGINT, name STRING"


def delivering(*targets: dict[str, Any], **more: Any) -> DAG:
    with DAG("several", schedule=None, params={"history": "several.history"}) as dag:
        create = CreateStreamOperator(task_id="create", stream="several", on="several.orders", show_initial_rows=True)
        create >> ConsumeStreamOperator(task_id="deliver", stream="several", targets=[*targets], **more)
    return dag


@pytest.fixture(scope="module")
def source(lake: Lake) -> str:
    lake.create("several.orders", COLUMNS, row_tracking=True)
    for name in ("mirror", "history"):
        lake.create(f"several.{name}", COLUMNS)
    lake.create("several.deleted", "id BIGINT")
    lake.sql("ALTER TABLE {t} ADD CONSTRAINT few CHECK (id < 100)", "several.history")
    lake.sql("INSERT INTO {t} VALUES (1, 'one'), (2, 'two')", "several.orders")
    return "several.orders"


def test_one_job_writes_all_targets_and_the_offset_moves_once(
    run_dag: RunDag, source: str, lake: Lake, warm_spark: Path, hook: TidemarkHook
) -> None:
    first = run_dag(delivering(MIRROR, HISTORY, DELETED))
    assert first.state == "success"
    assert lake.rows("several.mirror") == lake.rows("several.history") == [(1, "one"), (2, "two")]
    before = len(warm_spark.read_text().splitlines())
    lake.sql("DELETE FROM {t} WHERE id = 1", source)
    lake.sql("INSERT INTO {t} VALUES (3, 'three'), (100, 'much')", source)
    again = run_dag(delivering(MIRROR, HISTORY, DELETED), at=datetime(2026, 1, 2, tzinfo=UTC))
    assert again.state == "success"
    assert len(warm_spark.read_text().splitlines()) == before + 1
    assert lake.rows("several.mirror") == [(2, "two"), (3, "three"), (100, "much")]
    assert lake.rows("several.history") == [(1, "one"), (1, "one"), (2, "two"), (3, "three")]
    assert lake.rows("several.deleted") == [(1,)]
    event = again.returned("deliver")
    assert (event["from"], event["to"], event["quarantined"]) == (1, 3, 1)
    assert get_stream(hook.open_store(), "several").offset.version == 3


def test_a_target_that_cannot_be_written_stops_all_before_the_first_is_written(
    run_dag: RunDag, source: str, lake: Lake, spark_submit: Callable[[str], Path]
) -> None:
    started = spark_submit("exit 9")
    lake.sql("INSERT INTO {t} VALUES (4, 'four')", source)
    before = lake.version("several.mirror")
    failed = run_dag(delivering(MIRROR, {"target": "several.nowhere", "write_as": "append"}))
    assert failed.state == "failed"
    assert not started.exists()
    assert lake.version("several.mirror") == before


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"targets": []}, "a list with the arguments of each target"),
        ({"targets": ["several.mirror"]}, "the arguments of a target by name"),
        ({"targets": [{**MIRROR, "key": "id"}]}, "a target has no argument 'key'"),
        ({"targets": [{**MIRROR, "keys": []}]}, "a merge needs key columns"),
        ({"targets": [MIRROR], "write_as": "append"}, "every target has its own"),
        ({"targets": [MIRROR], "quarantine": "several.bad"}, "every target has its own"),
        ({}, "or give targets"),
    ],
)
def test_arguments_that_make_no_sense_fail_when_the_dag_is_parsed(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        ConsumeStreamOperator(task_id="it", stream="several", **arguments)
