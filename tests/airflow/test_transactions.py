"""The task group by real runs: nothing counts before the commit, everything is delivered once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from airflow.sdk import DAG, task

from tests.airflow.runs import Lake, Outcome
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.operators.streams import CreateStreamOperator
from tidemark.operators.transaction import WriteStreamOperator
from tidemark.streams.worker.streams import get_stream
from tidemark.task_groups.stream_transaction import stream_transaction

pytestmark = [pytest.mark.airflow, pytest.mark.spark]
RunDag = Callable[..., Outcome]
StandIn = Callable[[str], Path]


def two_targets(*, fails: str = "") -> DAG:
    with DAG("two_targets", schedule=None, params={"mirror": "g.mirror"}) as dag:

        @task
        def gate() -> None:
            if fails == "gate":
                raise RuntimeError("closed")

        @task
        def check() -> None:
            if fails == "check":
                raise RuntimeError("not right")

        @task
        def after() -> None: ...

        create = CreateStreamOperator(task_id="create", stream="g", on="g.source", show_initial_rows=True)
        with stream_transaction("tx", streams="g") as transaction:
            mirror = WriteStreamOperator(task_id="mirror", target="{{ params.mirror }}", write_as="merge", keys=["id"])
            history = WriteStreamOperator(
                task_id="history", write_as="sql", sql="INSERT INTO g.history SELECT id, METADATA$ACTION FROM g"
            )
            gate() >> mirror >> check()
            gate() >> history
        create >> transaction >> after()
    return dag


@pytest.fixture(scope="module")
def source(lake: Lake) -> str:
    lake.create("g.source", "id BIGINT, name STRING", row_tracking=True)
    lake.sql("INSERT INTO {t} VALUES (1, 'one')", "g.source")
    lake.create("g.mirror", "id BIGINT, name STRING")
    lake.create("g.history", "id BIGINT, action STRING")
    return "g.source"


def test_a_failure_before_any_write_releases_the_window(
    run_dag: RunDag, source: str, spark_submit: StandIn, hook: TidemarkHook
) -> None:
    started = spark_submit("exit 9")
    failed = run_dag(two_targets(fails="gate"))
    assert failed.state == "failed"
    assert failed.task("tx.commit") == "upstream_failed"
    assert failed.task("tx.rollback") == "success"
    assert failed.task("after") == "upstream_failed"
    assert failed.events("g") == []
    assert not started.exists()
    assert get_stream(hook.open_store(), "g").initial_rows_pending


def test_a_failure_after_a_write_moves_no_offset_and_announces_nothing(
    run_dag: RunDag, source: str, lake: Lake, warm_spark: Path, hook: TidemarkHook
) -> None:
    failed = run_dag(two_targets(fails="check"))
    assert failed.task("tx.mirror") == "success"
    assert failed.task("tx.commit") == "upstream_failed"
    assert failed.task("tx.rollback") == "success"
    assert failed.events("g") == []
    assert lake.rows("g.mirror") == [(1, "one")]
    assert get_stream(hook.open_store(), "g").initial_rows_pending


def test_the_next_run_finishes_what_was_begun_and_delivers_every_change_once(
    run_dag: RunDag, source: str, lake: Lake, warm_spark: Path, hook: TidemarkHook
) -> None:
    lake.sql("INSERT INTO {t} VALUES (2, 'two')", source)
    lake.sql("UPDATE {t} SET name = 'eins' WHERE id = 1", source)
    done = run_dag(two_targets())
    assert done.state == "success"
    assert lake.rows("g.mirror") == [(1, "eins"), (2, "two")]
    assert lake.rows("g.history") == [(1, "DELETE"), (1, "INSERT"), (1, "INSERT"), (2, "INSERT")]
    assert not get_stream(hook.open_store(), "g").initial_rows_pending
    assert get_stream(hook.open_store(), "g").offset.version == 3
    (event,) = done.events("g")
    assert (event["from"], event["to"]) == (1, 3)
    (pinned,) = done.returned("tx.begin")
    assert (pinned["versions"], pinned["estimated_rows"] > 0) == (2, True)
    assert [taken["initial_rows"] for taken in event["taken_over"]] == [True]
    assert done.task("after") == "success"


def test_a_group_with_nothing_new_commits_without_a_job_and_without_a_warning(
    run_dag: RunDag, source: str, spark_submit: StandIn, caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    started = spark_submit("exit 9")
    done = run_dag(two_targets())
    assert done.state == "success"
    assert not started.exists()
    assert done.returned("tx.mirror") == {}
    assert done.returned("tx.commit")["rows"] == 0
    said = caplog.text + capfd.readouterr().out
    assert "this run found nothing new" not in said
    assert "nothing new; the offset is at version" in said


def test_a_writer_outside_a_group_says_where_it_belongs(
    run_dag: RunDag, airflow_home: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with DAG("alone", schedule=None) as dag:
        WriteStreamOperator(task_id="w", target="g.mirror", write_as="append", stream="g")
    assert run_dag(dag).task("w") == "failed"
    assert "belongs into a stream_transaction" in caplog.text + capfd.readouterr().out
