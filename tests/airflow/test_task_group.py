"""The shape of a stream transaction, as it stands when the DAG file has been parsed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from airflow.sdk import DAG, TaskGroup, task, task_group

from tidemark.assets import stream_asset
from tidemark.errors import InvalidArgument, NotYetSupported
from tidemark.operators.transaction import WriteStreamOperator
from tidemark.task_groups.stream_transaction import stream_transaction

pytestmark = pytest.mark.airflow


def writer(name: str, **arguments: Any) -> WriteStreamOperator:
    return WriteStreamOperator(task_id=name, **{"target": name, "write_as": "append", **arguments})


def parse(body: Callable[[], None]) -> None:
    with DAG("parsed", schedule=None), stream_transaction("tx", streams="s"):
        body()


def build() -> tuple[DAG, TaskGroup]:
    with DAG("shape", schedule=None) as dag:

        @task
        def before() -> None: ...

        @task
        def check() -> None: ...

        @task
        def after() -> None: ...

        with stream_transaction("tx", streams=["s"], max_commits=3) as transaction:
            first = writer("mirror", write_as="merge", keys=["id"])
            writer("history", write_as="m:f", target=["a", "b"])
            last = writer("late", target="{{ params.where }}")
            first >> check() >> last
        before() >> transaction >> after()
    return dag, transaction


def test_begin_comes_first_commit_last_and_rollback_is_a_teardown() -> None:
    dag, _ = build()
    begin, commit, rollback = (dag.get_task(f"tx.{name}") for name in ("begin", "commit", "rollback"))
    assert begin.is_setup
    assert rollback.is_teardown
    assert not rollback.on_failure_fail_dagrun
    assert begin.upstream_task_ids == {"before"}
    assert begin.downstream_task_ids == {"tx.mirror", "tx.history", "tx.rollback"}
    assert commit.upstream_task_ids == {"tx.late", "tx.history"}
    assert rollback.upstream_task_ids == {"tx.begin", "tx.mirror", "tx.history", "tx.late", "tx.commit"}


def test_what_follows_the_group_follows_the_commit() -> None:
    dag, _ = build()
    assert dag.get_task("after").upstream_task_ids == {"tx.commit"}


def test_the_plan_of_all_writers_is_handed_to_begin_in_the_order_of_the_file() -> None:
    dag, _ = build()
    begin: Any = dag.get_task("tx.begin")
    assert [write["target"] for write in begin.writes] == ["mirror", ["a", "b"], "{{ params.where }}"]
    assert {str(write["stream"]) for write in begin.writes} == {"['s']"}
    places = {name: dag.get_task(f"tx.{name}").first_statement for name in ("mirror", "history", "late")}
    assert places == {"mirror": 0, "history": 1, "late": 3}


def test_commit_owns_the_streams_asset() -> None:
    dag, _ = build()
    assert dag.get_task("tx.commit").outlets == [stream_asset("s")]
    assert not dag.get_task("tx.mirror").outlets


def a_mapped_writer() -> None:
    WriteStreamOperator.partial(task_id="w", write_as="append").expand(target=["a", "b"])


def a_writer_in_a_mapped_group() -> None:
    @task_group
    def inner(target: str) -> None:
        writer("w", target=target)

    inner.expand(target=["a", "b"])


def nothing() -> None: ...


@pytest.mark.parametrize(
    ("body", "error", "named"),
    [
        (a_mapped_writer, NotYetSupported, "mapped WriteStreamOperator"),
        (a_writer_in_a_mapped_group, NotYetSupported, "mapped WriteStreamOperator"),
        (nothing, InvalidArgument, "no WriteStreamOperator"),
    ],
)
def test_a_body_whose_plan_cannot_be_known_is_refused_when_the_file_is_parsed(
    body: Callable[[], None], error: type[Exception], named: str
) -> None:
    with pytest.raises(error, match=named):
        parse(body)


def test_a_writer_in_an_inner_group_is_part_of_the_plan() -> None:
    with DAG("inner", schedule=None) as dag, stream_transaction("tx", streams="s"), TaskGroup("more"):
        writer("w")
    begin: Any = dag.get_task("tx.begin")
    assert len(begin.writes) == 1
    assert dag.get_task("tx.more.w").upstream_task_ids == {"tx.begin"}


def test_a_quarantine_is_a_statement_of_the_plan() -> None:
    with DAG("sorted_out", schedule=None) as dag, stream_transaction("tx", streams="s"):
        writer("first", quarantine="{{ params.bad }}")
        writer("second")
    begin: Any = dag.get_task("tx.begin")
    assert begin.writes[0]["quarantine"] == "{{ params.bad }}"
    assert dag.get_task("tx.second").first_statement == 2
