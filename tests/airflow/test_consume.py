"""ConsumeStreamOperator by real runs: each change once in the target, then the offset, then the event."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from tests.airflow.runs import Lake, Outcome
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.replay import ReplayWindowOperator
from tidemark.operators.streams import CreateStreamOperator
from tidemark.streams.worker.streams import get_stream, stream_history, stream_transactions

pytestmark = [pytest.mark.airflow, pytest.mark.spark]
RunDag = Callable[..., Outcome]
StandIn = Callable[[str], Path]

WAYS: dict[str, dict[str, Any]] = {
    "a": {"write_as": "append", "target": "t.appended"},
    "m": {"write_as": "merge", "target": "{{ params.mirror }}", "keys": ["id"]},
    "q": {"write_as": "sql", "sql": "INSERT INTO t.deleted SELECT id FROM q WHERE METADATA$ACTION = 'DELETE'"},
    "f": {"write_as": "stream_functions:keep_names", "target": ["t.names", "t.counts"]},
}
TARGETS = {
    "t.appended": "id BIGINT, name STRING",
    "t.mirror": "id BIGINT, name STRING",
    "t.deleted": "id BIGINT",
    "t.names": "id BIGINT, name STRING",
    "t.counts": "n BIGINT",
}
DAY = datetime(2026, 1, 1, tzinfo=UTC)


def four_ways(*, only: str = "amqf", dag_id: str = "four_ways", **more: Any) -> DAG:
    with DAG(dag_id, schedule=None, params={"mirror": "t.mirror"}) as dag:
        for stream in only:
            create = CreateStreamOperator(task_id=f"create_{stream}", stream=stream, on="t.orders")
            create >> ConsumeStreamOperator(task_id=stream, stream=stream, **WAYS[stream], **more)
    return dag


@pytest.fixture(scope="module")
def source(lake: Lake) -> str:
    """Three rows that the mirror has already, and the targets."""
    lake.create("t.orders", "id BIGINT, name STRING", row_tracking=True)
    lake.sql("INSERT INTO {t} VALUES (1, 'one'), (2, 'two'), (3, 'three')", "t.orders")
    for name, columns in TARGETS.items():
        lake.create(name, columns)
    lake.sql("INSERT INTO {t} VALUES (1, 'one'), (2, 'two'), (3, 'three')", "t.mirror")
    return "t.orders"


@pytest.fixture
def no_spark(spark_submit: StandIn) -> Path:
    """A spark-submit that fails; the file exists once it was started."""
    return spark_submit("exit 9")


@pytest.mark.quick
def test_a_new_stream_has_nothing_to_deliver_and_no_jvm_is_started_to_learn_it(
    run_dag: RunDag, source: str, no_spark: Path
) -> None:
    first = run_dag(four_ways())
    assert first.state == "success"
    assert not no_spark.exists()
    (event,) = first.events("a")
    assert (event["from"], event["to"], event["rows"]) == (1, 1, 0)


def test_every_way_to_write_delivers_each_change_once_and_announces_it(
    run_dag: RunDag, source: str, lake: Lake, warm_spark: Path, hook: TidemarkHook
) -> None:
    lake.sql("INSERT INTO {t} VALUES (4, 'four')", source)
    lake.sql("UPDATE {t} SET name = 'zwei' WHERE id = 2", source)
    lake.sql("DELETE FROM {t} WHERE id = 3", source)
    done = run_dag(four_ways(), at=DAY)
    assert done.state == "success"
    assert lake.rows("t.appended") == [(2, "two"), (2, "zwei"), (3, "three"), (4, "four")]
    assert lake.rows("t.mirror") == [(1, "one"), (2, "zwei"), (4, "four")]
    assert lake.rows("t.deleted") == [(2,), (3,)]
    assert lake.rows("t.names") == [(2, "zwei"), (4, "four")]
    assert lake.rows("t.counts") == [(4,)]
    for stream in WAYS:
        (event,) = done.events(stream)
        assert (event["stream"], event["from"], event["to"]) == (stream, 1, 4)
        assert event == done.returned(stream)
        assert get_stream(hook.open_store(), stream).offset.version == 4
    assert done.events("a")[0]["rows"] == 4
    assert done.events("a")[0]["lag"] >= 0


def test_a_cleared_run_delivers_nothing_and_announces_the_stored_result_again(
    run_dag: RunDag, source: str, lake: Lake, no_spark: Path, hook: TidemarkHook, caplog: pytest.LogCaptureFixture
) -> None:
    before = {name: lake.version(name) for name in TARGETS}
    lake.sql("INSERT INTO {t} VALUES (5, 'five')", source)
    again = run_dag(four_ways(), at=DAY)
    assert again.state == "success"
    assert not no_spark.exists()
    assert {name: lake.version(name) for name in TARGETS} == before
    assert (again.events("m")[-1]["from"], again.events("m")[-1]["to"]) == (1, 4)
    assert "window (1, 4] was delivered at" in caplog.text
    assert "is not delivered again" in caplog.text


def test_a_dry_run_says_what_would_be_read_and_touches_nothing(
    run_dag: RunDag, source: str, lake: Lake, warm_spark: Path, hook: TidemarkHook
) -> None:
    store = hook.open_store()
    before = (lake.version("t.mirror"), get_stream(store, "m"), stream_history(store, "m"))
    done = run_dag(four_ways(only="m", dag_id="dry", dry_run="{{ 1 == 1 }}"))
    shown = done.returned("m")
    assert shown["windows"] == [{"stream": "m", "from": 4, "to": 5, "initial_rows": False}]
    assert "m" in shown["reads"]
    assert done.events("m") == []
    assert (lake.version("t.mirror"), get_stream(store, "m"), stream_history(store, "m")) == before
    assert not any(t.key.dag_id == "dry" for t in stream_transactions(store, "m"))


def test_a_job_that_dies_fails_the_task_and_keeps_the_offset_and_the_next_try_delivers_once(
    run_dag: RunDag, source: str, lake: Lake, spark_submit: StandIn, hook: TidemarkHook, request: pytest.FixtureRequest
) -> None:
    spark_submit("echo out of memory; exit 52")
    failed = run_dag(four_ways(only="m", dag_id="dies"), at=DAY)
    assert failed.task("m") == "failed"
    assert get_stream(hook.open_store(), "m").offset.version == 4
    request.getfixturevalue("warm_spark")
    assert run_dag(four_ways(only="m", dag_id="dies"), at=DAY).state == "success"
    assert lake.rows("t.mirror") == [(1, "one"), (2, "zwei"), (4, "four"), (5, "five")]
    assert get_stream(hook.open_store(), "m").offset.version == 5


def test_max_commits_takes_no_more_versions_than_that(
    run_dag: RunDag, source: str, lake: Lake, warm_spark: Path, hook: TidemarkHook
) -> None:
    lake.sql("INSERT INTO {t} VALUES (6, 'six')", source)
    done = run_dag(four_ways(only="m", dag_id="bounded", max_commits="{{ 1 }}"))
    assert (done.returned("m")["from"], done.returned("m")["to"]) == (5, 6)
    assert run_dag(four_ways(only="a", dag_id="bounded_a", max_commits=1)).returned("a")["to"] == 5


@pytest.mark.quick
def test_what_a_run_took_is_replayed_into_another_table(run_dag: RunDag, lake: Lake, warm_spark: Path) -> None:
    lake.create("r.orders", "id BIGINT, name STRING", row_tracking=True)
    lake.create("r.mirror", "id BIGINT, name STRING")
    lake.create("r.late", "id BIGINT, name STRING")
    lake.sql("INSERT INTO {t} VALUES (1, 'one')", "r.orders")
    with DAG("r", schedule=None) as dag:
        create = CreateStreamOperator(task_id="create", stream="r", on="r.orders", show_initial_rows=True)
        create >> ConsumeStreamOperator(task_id="r", stream="r", target="r.mirror", write_as="merge", keys="id")
    first = run_dag(dag, at=DAY)
    lake.sql("UPDATE {t} SET name = 'eins' WHERE id = 1", "r.orders")
    assert run_dag(dag, at=DAY + timedelta(days=1)).state == "success"
    with DAG("again", schedule=None) as replay:
        ReplayWindowOperator(task_id="again", stream="r", run=first.run.run_id, target="r.late", write_as="append")
    done = run_dag(replay, at=DAY)
    assert (done.state, done.returned("again")["initial_rows"]) == ("success", True)
    assert run_dag(replay, at=DAY).state == "success"
    assert (lake.rows("r.late"), lake.rows("r.mirror")) == ([(1, "one")], [(1, "eins")])


def test_nothing_new_may_end_as_skipped_without_an_event(run_dag: RunDag, source: str, no_spark: Path) -> None:
    done = run_dag(four_ways(only="m", dag_id="skips", skip_when_empty=True))
    assert done.task("m") == "skipped"
    assert done.events("m") == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"write_as": "merge", "target": "t.mirror", "keys": "{{ '' }}"}, "a merge needs key columns"),
        ({"write_as": "{{ 'upsert' }}", "target": "t.mirror"}, "it must be 'append', 'merge', 'sql'"),
        ({"write_as": "append", "target": "t.nowhere"}, "The target t.nowhere does not exist"),
        ({"write_as": "sql", "sql": "{{ 'DROP TABLE t.mirror' }}"}, "can be made to happen once"),
        ({"write_as": "sql", "sql": "INSERT INTO t.names SELECT * FROM m", "target": "t.mirror"}, "writes another"),
        ({"write_as": "append", "target": "t.mirror", "max_commits": "{{ 'two' }}"}, "a whole number from 1 on"),
    ],
)
def test_bad_arguments_fail_the_task_in_words_before_anything_is_written(
    run_dag: RunDag, source: str, no_spark: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str],
    hook: TidemarkHook, arguments: dict[str, Any], named: str,
) -> None:  # fmt: skip
    with DAG("bad_arguments", schedule=None) as dag:
        ConsumeStreamOperator(task_id="k", stream="m", **arguments)
    assert run_dag(dag).task("k") == "failed"
    assert named in " ".join((caplog.text + capfd.readouterr().out).split())
    assert not no_spark.exists()
    assert not any(t.key.dag_id == "bad_arguments" for t in stream_transactions(hook.open_store(), "m"))


def test_an_error_that_a_retry_cannot_help_uses_up_no_retries(run_dag: RunDag, source: str, no_spark: Path) -> None:
    with DAG("no_retries", schedule=None) as dag:
        ConsumeStreamOperator(task_id="k", stream="m", target="t.mirror", write_as="{{ 'upsert' }}", retries=2)
    failed = run_dag(dag)
    assert failed.task("k") == "failed"
    assert failed.run.get_task_instance("k").try_number == 1


def test_max_rows_and_max_bytes_end_the_window_before_the_commit_that_would_exceed_them(
    run_dag: RunDag, source: str, lake: Lake, warm_spark: Path
) -> None:
    for name in ("seven", "eight"):
        lake.sql(f"INSERT INTO {{t}} VALUES (7, '{name}'), (8, '{name}')", source)
    bounded = run_dag(four_ways(only="a", dag_id="few_rows", max_rows="{{ 2 }}")).returned("a")
    sliced = run_dag(four_ways(only="a", dag_id="few_bytes", max_bytes="{{ 100 }}")).returned("a")
    assert (sliced["from"], sliced["to"]) == (bounded["to"], bounded["to"] + 1)
    late = run_dag(four_ways(only="a", dag_id="not_later", until="2026-01-01T00:00:00Z"))
    assert (late.state, late.returned("a")["to"]) == ("success", sliced["to"])
