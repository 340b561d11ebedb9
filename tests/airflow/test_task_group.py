"""The shape of a stream transaction, as it stands when the DAG file has been parsed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, TaskGroup, task, task_group

from tests.airflow.runs import Outcome
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


def test_a_stream_that_no_writer_reads_is_refused_when_the_file_is_parsed() -> None:
    def group(*reads: str) -> None:
        with DAG("unread", schedule=None), stream_transaction("tx", streams=["s", "t"]):
            for number, stream in enumerate(reads):
                sql = f"INSERT INTO copy{number} SELECT id FROM {stream}"
                WriteStreamOperator(task_id=f"w{number}", write_as="sql", sql=sql)

    with pytest.raises(InvalidArgument, match=r"stream='t': nothing reads it"):
        group("S")
    group("S", "t")
    group("s JOIN t")


def test_a_statement_in_a_file_is_the_same_for_begin_and_its_writer(tmp_path: Path) -> None:
    (tmp_path / "it.sql").write_text("INSERT INTO t.days\nSELECT id, '{{ ds }}' FROM s\n")
    with (
        DAG("of_files", schedule=None, template_searchpath=[str(tmp_path)]) as dag,
        stream_transaction("tx", streams="s"),
    ):
        WriteStreamOperator(task_id="days", write_as="sql", sql="it.sql")
        writer("copy")
    begin: Any = dag.get_task("tx.begin")
    own: Any = dag.get_task("tx.days")
    dag.resolve_template_files()
    for one in (begin, own):
        one.render_template_fields({"ds": "2026-01-31"})
    assert [write["sql"] for write in begin.writes] == [own.sql, None]
    assert own.sql == "INSERT INTO t.days\nSELECT id, '2026-01-31' FROM s"


def test_targets_are_counted_as_the_plan_counts_them() -> None:
    with DAG("counted", schedule=None) as dag:

        @task
        def where() -> str:
            return "t.copy"

        known = where()
        with stream_transaction("tx", streams="s"):
            writer("doubles", write_as="m:f", target=["a.b", "a.c", "a.b"])
            writer("of_a_task", target=known)
            writer("last")
    begin: Any = dag.get_task("tx.begin")
    places = {name: dag.get_task(f"tx.{name}").first_statement for name in ("doubles", "of_a_task", "last")}
    assert (places, begin.targets_when_parsed) == ({"doubles": 0, "of_a_task": 2, "last": 3}, [2, 1, 1])
    assert "where" in begin.upstream_task_ids


def test_a_template_that_becomes_another_number_of_targets_is_refused_before_the_plan(
    run_dag: Callable[..., Outcome], caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    native = DAG("grown", schedule=None, render_template_as_native_obj=True)
    with native, stream_transaction("tx", streams="s"):
        writer("two", write_as="m:f", target="{{ ['g.a', 'g.b'] }}")
    assert run_dag(native).task("tx.begin") == "failed"
    assert "target=['g.a', 'g.b']: in a group their number is settled" in caplog.text + capfd.readouterr().out


@pytest.mark.parametrize(
    ("params", "target", "refused"),
    [
        ({"table": "t.mine"}, "{{ params.table }}", True),
        ({"table": "t.mine"}, ["{{ params['table'] }}"], True),
        ({"of_dag": "t.other"}, "{{ params.of_dag }}", True),
        ({"of_dag": "t.copy"}, "{{ params.of_dag }}", False),
        ({"table": "t.mine"}, "t.copy_{{ ds_nodash }}", False),
        ({"table": "t.mine"}, "t.params", False),
        (None, "{{ params.of_dag }}", False),
    ],
)
def test_params_of_a_writer_are_refused_if_its_templates_may_use_them(
    params: Mapping[str, str] | None, target: str | list[str], refused: bool
) -> None:
    said = pytest.raises(InvalidArgument, match="has the params of the DAG alone") if refused else nullcontext()
    with DAG("own", schedule=None, params={"of_dag": "t.copy"}), said, stream_transaction("tx", streams="s"):
        writer("w", target=target, params=params)
