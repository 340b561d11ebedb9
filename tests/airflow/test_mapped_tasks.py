"""Mapped tasks have the defaults of others, though Airflow hands their operators None for what is not given."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG, AssetAlias
from airflow.sdk.definitions.retry_policy import ExceptionRetryPolicy, RetryAction
from jinja2 import Template

from tidemark.assets import replicated_alias
from tidemark.errors import SourceRecreated
from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.replication_objects import ApplyEventsOperator, BackfillObjectOperator
from tidemark.sensors.streams import StreamHasDataSensor
from tidemark.task_groups.replicate import replicate_continuously

DAGS = Path(__file__).parents[2] / "dags"

pytestmark = pytest.mark.airflow


def unmapped(kind: Any, over: dict[str, Any], **arguments: Any) -> Any:
    """The task of the first value, as a worker makes it."""
    with DAG("mapped", schedule=None):
        mapped = kind.partial(task_id="it", **arguments).expand(**over)
    return mapped.unmap({name: values[0] for name, values in over.items()})


@pytest.mark.parametrize(
    ("kind", "over", "arguments"),
    [
        (ConsumeStreamOperator, {"target": ["t.a"]}, {"stream": "s", "write_as": "append"}),
        (StreamHasDataSensor, {"stream": ["s"]}, {}),
    ],
)
def test_a_mapped_task_fails_at_once_for_what_no_retry_helps(kind: Any, over: Any, arguments: Any) -> None:
    gone = SourceRecreated(table="t", stream="s", path="p", found="a", expected="b")
    assert unmapped(kind, over, **arguments).retry_policy.evaluate(gone, 1, 3).action is RetryAction.FAIL


def test_a_mapped_task_keeps_the_policy_of_its_dag() -> None:
    own = ExceptionRetryPolicy([])
    assert unmapped(StreamHasDataSensor, {"stream": ["s"]}, retry_policy=own).retry_policy is own


@pytest.mark.parametrize(
    ("kind", "argument"), [(BackfillObjectOperator, "object_name"), (ApplyEventsOperator, "objects")]
)
def test_mapped_tasks_of_objects_are_labelled(kind: Any, argument: str) -> None:
    one = unmapped(kind, {argument: ["shop.orders"]}, replication="r")
    assert one.map_index_template == "{{ task.label }}"
    assert one.label == "shop.orders"
    other = unmapped(kind, {argument: ["shop.orders"]}, replication="r", map_index_template="{{ ds }}")
    assert other.map_index_template == "{{ ds }}"


def test_backfills_beside_rounds_announce_the_replication() -> None:
    with DAG("rounds", schedule=None) as dag:
        replicate_continuously("shop", replication="shop")
        replicate_continuously("quiet", replication="shop", backfill={"outlets": []})
    assert dag.task_dict["shop.backfill"].outlets == [AssetAlias(replicated_alias("shop"))]
    assert dag.task_dict["quiet.backfill"].outlets == []


@pytest.mark.parametrize(("dag", "task", "argument"), [("keep_tables_clustered", "recluster", "tables")])
def test_a_label_of_many_tables_fits_the_column_of_airflow(dag: str, task: str, argument: str) -> None:
    found = runpy.run_path(str(DAGS / f"{dag}.py"))["dag"].task_dict[task]
    one = SimpleNamespace(**{argument: [f"s3://lake/tables/{n:0100}" for n in range(3)]})
    assert 100 < len(Template(found.map_index_template).render(task=one)) <= 250
    assert Template(found.map_index_template).render(task=SimpleNamespace(**{argument: "a.b"})) == "a.b"
