"""Links of a task: to its window on the page, and to Spark's page, while the task runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from airflow.sdk import DAG, BaseOperator

from tests.airflow.runs import Outcome
from tidemark.links.streams import SparkUiLink, WindowLink
from tidemark.links.yarn import YarnLink
from tidemark.operators._base import TidemarkOperator
from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.transaction import WriteStreamOperator
from tidemark.task_groups.replicate import replicate
from tidemark.task_groups.stream_transaction import stream_transaction

pytestmark = pytest.mark.airflow

INSTANCE = SimpleNamespace(dag_id="d", run_id="manual__2026-11-21T06:00:00+00:00", task_id="k", map_index=-1)


def asked(operator: BaseOperator, instance: Any = INSTANCE) -> dict[str, str]:
    link = WindowLink().get_link(operator, ti_key=instance)
    return {name: value for name, (value,) in parse_qs(urlsplit(link).query).items()}


def test_the_link_names_stream_run_and_task() -> None:
    sql = "INSERT INTO t SELECT id FROM `a b` UNION ALL SELECT id FROM c"
    task = ConsumeStreamOperator(task_id="k", stream=["a b", "c"], write_as="sql", sql=sql, conn_id="finance")
    assert asked(task) == {
        "stream": "a b", "connection": "finance", "dag_id": "d", "run_id": INSTANCE.run_id, "task_id": "k",
    }  # fmt: skip
    mapped = SimpleNamespace(**{**vars(INSTANCE), "map_index": 3})
    assert asked(task, mapped)["map_index"] == "3"


def test_in_a_group_every_task_leads_to_the_groups_window() -> None:
    with DAG("d"), stream_transaction("deliver", streams="s"):
        write = WriteStreamOperator(task_id="w", target="t", write_as="append")
    assert asked(write)["task_id"] == "deliver"
    tasks = [write, *write.upstream_list, *write.downstream_list]
    assert len(tasks) >= 3
    assert {asked(task)["task_id"] for task in tasks} == {"deliver"}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("base_url", "page"),
    [
        ("", "plugin/tidemark"),
        ("https://h/", "https://h/plugin/tidemark"),
        ("https://h/air", "https://h/air/plugin/tidemark"),
    ],
)
def test_the_link_is_under_the_base_url(base_url: str, page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", base_url)
    task = ConsumeStreamOperator(task_id="k", stream="s", target="t", write_as="append")
    assert WindowLink().get_link(task, ti_key=INSTANCE).partition("?")[0] == page  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("named", "shown"),
    [
        ("https://spark:8080/", "https://spark:8080/"),
        ("", ""),
        ("javascript:alert(1)", ""),
        ("spark:8080", ""),
        ("http://[spark:8080", ""),
        ("https://ana:secret@spark:8080/", ""),
    ],
)
def test_sparks_page_is_linked_where_the_connection_names_one(
    named: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = f'{{"conn_type": "tidemark", "extra": {{"spark_ui_url": "{named}"}}}}'
    monkeypatch.setenv("AIRFLOW_CONN_FINANCE", connection)
    task = ConsumeStreamOperator(task_id="k", stream="s", target="t", write_as="append", conn_id="finance")
    assert SparkUiLink().get_link(task, ti_key=INSTANCE) == shown  # type: ignore[arg-type]


class LooksAtItsLinks(TidemarkOperator):
    """Says which links Airflow has of it while it runs."""

    def __init__(self, *, stream: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.stream = stream

    template_fields = ("stream", "conn_id")

    def execute(self, context: Any) -> dict[str, Any]:
        keys = [link.xcom_key for link in self.operator_extra_links]
        return {key: context["ti"].xcom_pull(task_ids=self.task_id, key=key) for key in keys}


def test_links_are_there_while_the_task_runs(
    run_dag: Callable[..., Outcome], airflow_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = '{"conn_type": "tidemark", "extra": {"spark_ui_url": "http://spark:8080"}}'
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", spark)
    with DAG("looks_at_its_links", schedule=None) as dag:
        LooksAtItsLinks(task_id="look", stream="s_{{ dag.dag_id }}")
    ran = run_dag(dag)
    assert ran.state == "success"
    seen = ran.returned("look")
    assert parse_qs(urlsplit(seen["_link_WindowLink"]).query)["stream"] == ["s_looks_at_its_links"]
    assert parse_qs(urlsplit(seen["_link_WindowLink"]).query)["run_id"] == [ran.run.run_id]
    assert seen["_link_SparkUiLink"] == "http://spark:8080"


def test_a_task_of_a_replication_has_no_window_to_lead_to() -> None:
    with DAG("d") as dag:
        replicate("r", replication="shop")
    ours = [task for task in dag.tasks if isinstance(task, TidemarkOperator)]
    assert len(ours) == 6
    assert {tuple(type(link) for link in task.operator_extra_links) for task in ours} == {(SparkUiLink, YarnLink)}
