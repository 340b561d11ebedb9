"""Making, moving, dropping, awaiting and listing streams: no JVM in any of it, but for turning row tracking on."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from airflow.sdk import DAG
from airflow.sdk.exceptions import TaskDeferred

from tests.airflow.command_line import run_airflow
from tests.airflow.runs import Lake, Outcome
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import BaseOffset, StreamMode, TableRef
from tidemark.model.views import ViewQuery
from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.keyed_streams import CreateKeyedStreamOperator
from tidemark.operators.streams import AdvanceStreamOperator, CreateStreamOperator, DropStreamOperator
from tidemark.sensors.streams import StreamHasDataSensor
from tidemark.streams.worker.streams import create_stream, get_stream, stream_history

pytestmark = [pytest.mark.airflow, pytest.mark.spark]
RunDag = Callable[..., Outcome]
StandIn = Callable[[str], Path]


@pytest.fixture(scope="module")
def source(lake: Lake) -> str:
    """A table with three data commits after its creation: versions 1 to 3."""
    lake.create("s.source", "id BIGINT", row_tracking=True)
    for number in (1, 2, 3):
        lake.sql(f"INSERT INTO {{t}} VALUES ({number})", "s.source")
    lake.create("s.untracked", "id BIGINT")
    return "s.source"


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Callable[[], str]:
    return lambda: " ".join((caplog.text + capfd.readouterr().out).split())


def one(operator: type[Any], dag_id: str, **arguments: Any) -> DAG:
    with DAG(dag_id, schedule=None, params={"at": "1"}) as dag:
        operator(task_id="it", **arguments)
    return dag


def test_creating_a_stream_again_keeps_it_and_its_place(run_dag: RunDag, source: str, hook: TidemarkHook) -> None:
    dag = one(CreateStreamOperator, "create", stream="s", on=source, at="{{ params.at }}", comment="first")
    assert run_dag(dag).returned("it") == {
        "stream": "s", "table": source, "mode": "standard", "version": 1, "created": True,
    }  # fmt: skip
    made = get_stream(hook.open_store(), "s")
    later = one(CreateStreamOperator, "create", stream="S", on=str(hook.table_uri(source)))
    assert run_dag(later).returned("it")["created"] is False
    assert get_stream(hook.open_store(), "s") == made


def test_a_stream_may_start_at_a_time(run_dag: RunDag, source: str, hook: TidemarkHook) -> None:
    when = DeltaLog.open(hook.table_uri(source)).timestamp(2) + timedelta(milliseconds=1)
    dag = one(CreateStreamOperator, "at_a_time", stream="timed", on=source, at=when.isoformat())
    assert run_dag(dag).returned("it")["version"] == 2


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"stream": "x", "on": "s.nowhere"}, "TableNotFound"),
        ({"stream": "x", "on": "s.untracked"}, "RowTrackingDisabled"),
        ({"stream": "x", "on": "S"}, "StreamOnStream"),
        ({"stream": "s", "on": "s.source", "mode": "append_only"}, "StreamExists"),
        ({"stream": "x", "on": "s.source", "mode": "insert_only"}, "ExternalTableNotFound"),
        ({"stream": "x", "on": "s.source", "mode": "{{ 'all' }}"}, "InvalidArgument"),
        ({"stream": "x", "on": "s.source", "at": 99}, "VersionNotFound"),
        ({"stream": "x", "on": "s.source", "at": "{{ '2026-01-01T00:00:00' }}"}, "InvalidArgument"),
    ],
)
def test_what_cannot_have_a_stream_is_said_by_name(
    run_dag: RunDag, source: str, said: Callable[[], str], arguments: dict[str, Any], named: str
) -> None:
    assert run_dag(one(CreateStreamOperator, "refused", **arguments)).task("it") == "failed"
    assert named in said()


def test_row_tracking_is_turned_on_only_on_request(
    run_dag: RunDag, source: str, warm_spark: Path, hook: TidemarkHook
) -> None:
    dag = one(CreateStreamOperator, "prepare", stream="prepared", on="s.untracked", enable_row_tracking=True)
    made = run_dag(dag).returned("it")
    log = DeltaLog.open(hook.table_uri("s.untracked"))
    assert log.state().row_tracking
    assert made["version"] == log.head()


def test_advancing_passes_changes_over_and_says_who_and_why(run_dag: RunDag, source: str, hook: TidemarkHook) -> None:
    dag = one(AdvanceStreamOperator, "advance", stream="s", to="2", why="these were loaded by hand")
    assert run_dag(dag).returned("it")["version"] == 2
    move = stream_history(hook.open_store(), "s")[-1]
    assert (move.from_version, move.to_version, move.why) == (1, 2, "these were loaded by hand")
    assert move.who.startswith("advance/")


def test_advancing_to_now_leaves_nothing_to_deliver(
    run_dag: RunDag, source: str, spark_submit: StandIn, said: Callable[[], str]
) -> None:
    started = spark_submit("exit 9")
    waiting = one(StreamHasDataSensor, "waiting", stream="s", poke_interval=0.1, timeout=0.3)
    assert run_dag(waiting).task("it") == "success"
    assert run_dag(one(AdvanceStreamOperator, "skip", stream="s", to="now", why="x")).returned("it")["version"] == 3
    assert run_dag(waiting).task("it") == "failed"
    assert "has nothing new" in said()
    assert not started.exists()


def test_a_stream_on_a_view_advances_in_each_of_its_tables(
    run_dag: RunDag, source: str, lake: Lake, hook: TidemarkHook, said: Callable[[], str]
) -> None:
    lake.create("s.partner", "id BIGINT", row_tracking=True)
    bases = [BaseOffset(hook.table(name), version) for name, version in ((source, 1), ("s.partner", 0))]
    query = ViewQuery(name="v", text="…", schema_json="{}", bases=(source, "s.partner"), settings={}, digest="d")
    create_stream(
        hook.open_store(),
        name="on_view",
        source=TableRef("v", "", "d"),
        mode=StreamMode.STANDARD,
        at_version=1,
        who="test",
        view=query,
        view_bases=bases,
    )
    lake.sql("INSERT INTO {t} VALUES (1)", "s.partner")
    at_a_version = one(AdvanceStreamOperator, "view_version", stream="on_view", to="2", why="x")
    assert run_dag(at_a_version).task("it") == "failed"
    assert "each of its tables counts versions of its own" in said()
    heads = [DeltaLog.open(hook.table_uri(name)).head() for name in (source, "s.partner")]
    advanced = run_dag(one(AdvanceStreamOperator, "view_now", stream="on_view", to="now", why="x")).returned("it")
    assert advanced["version"] == sum(heads)
    assert [base.version for base in get_stream(hook.open_store(), "on_view").bases] == heads


def test_a_sensor_sees_a_change_and_not_a_commit_without_one(
    run_dag: RunDag, source: str, lake: Lake, said: Callable[[], str]
) -> None:
    waiting = one(StreamHasDataSensor, "sees", stream="s", poke_interval=0.1, timeout=0.2)
    lake.sql("OPTIMIZE {t}", source)
    assert run_dag(waiting).task("it") == "failed"
    lake.sql("INSERT INTO {t} VALUES (4)", source)
    assert run_dag(waiting).task("it") == "success"


def test_an_exact_sensor_passes_over_changes_that_cancel_and_waits_on(
    run_dag: RunDag, lake: Lake, warm_spark: Path, hook: TidemarkHook
) -> None:
    table = "s.cancelled"
    lake.create(table, "id BIGINT", row_tracking=True)
    run_dag(one(CreateStreamOperator, "exact_stream", stream="exact", on=table))
    lake.sql("INSERT INTO {t} VALUES (1)", table)
    lake.sql("DELETE FROM {t} WHERE id = 1", table)
    waiting = one(StreamHasDataSensor, "exact", stream="exact", exact=True, poke_interval=0.1, timeout=0.2)
    assert run_dag(waiting).task("it") == "failed"
    passed = stream_history(hook.open_store(), "exact")[-1]
    assert (passed.to_version, passed.why) == (DeltaLog.open(hook.table_uri(table)).head(), "proven empty")
    lake.sql("INSERT INTO {t} VALUES (2)", table)
    assert run_dag(waiting).task("it") == "success"
    assert get_stream(hook.open_store(), "exact").offset.version == passed.to_version

    lake.sql("DELETE FROM {t}", table)
    deferred = StreamHasDataSensor(task_id="deferred", stream="exact", exact=True, deferrable=True)
    task = SimpleNamespace(dag_id="deferred", run_id="one", task_id="deferred", map_index=-1)
    fired: dict[str, Any] = {"status": "found", "value": {"stream": "exact"}}
    end = datetime.now(UTC) + timedelta(minutes=5)
    with pytest.raises(TaskDeferred) as waits_on:
        deferred.execute_complete({"ti": task}, fired, end=end.isoformat())  # type: ignore[typeddict-item]
    assert (waits_on.value.method_name, waits_on.value.trigger.end) == ("execute_complete", end)


def test_a_sensor_that_would_wait_for_a_vanished_stream_fails(
    run_dag: RunDag, airflow_home: Path, said: Callable[[], str]
) -> None:
    assert run_dag(one(StreamHasDataSensor, "gone", stream="never was", mode="reschedule")).task("it") == "failed"
    assert "StreamNotFound" in said()


def test_the_command_line_shows_streams_in_every_format(run_dag: RunDag, source: str, hook: TidemarkHook) -> None:
    table = cli("streams", "list")
    assert "name" in table
    assert "s.source" in table
    rows = {row["name"]: row for row in json.loads(cli("streams", "list", "--output", "json"))}
    behind = DeltaLog.open(hook.table_uri(source)).head() - 3
    assert (rows["s"]["version"], rows["s"]["behind"]) == ("3", str(behind))
    (shown,) = yaml.safe_load(cli("streams", "show", "S", "--output", "yaml"))
    assert [move["why"] for move in shown["history"]][:2] == ["created", "these were loaded by hand"]
    assert shown["comment"] == "first"
    assert shown["state"] == rows["s"]["state"]
    assert "these were loaded by hand" in cli("streams", "show", "s")


def test_the_command_line_names_what_is_wrong(airflow_home: Path) -> None:
    command = [sys.executable, "-m", "airflow", "tidemark", "streams", "show", "never was"]
    failed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert "StreamNotFound: Stream 'never was' does not exist" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_the_command_line_migrates_and_checks_the_store(airflow_home: Path) -> None:
    assert "is at revision" in cli("db", "migrate")
    (row,) = json.loads(cli("db", "check", "--output", "json"))
    assert row["control_store"].startswith("sqlite:///")


def test_dropping_a_stream_is_harmless_to_repeat(run_dag: RunDag, source: str, said: Callable[[], str]) -> None:
    drop = one(DropStreamOperator, "drop", stream="s")
    assert run_dag(drop).returned("it") is True
    assert run_dag(drop).returned("it") is False
    assert run_dag(one(DropStreamOperator, "drop_strictly", stream="s", if_exists=False)).task("it") == "failed"
    assert "StreamNotFound" in said()


def cli(*arguments: str) -> str:
    return run_airflow("tidemark", *arguments).stdout


def test_a_stream_by_key_needs_no_row_tracking_and_is_consumed_once(
    run_dag: RunDag, source: str, lake: Lake, warm_spark: Path, hook: TidemarkHook
) -> None:
    lake.create("s.reloaded", "id BIGINT, name STRING")
    lake.create("s.reloads", "id BIGINT, name STRING, `METADATA$ACTION` STRING")
    lake.sql("INSERT INTO {t} VALUES (1, 'one'), (2, 'two')", "s.reloaded")

    def dag(keys: str = "{{ params.key }}") -> DAG:
        with DAG("by_key", schedule=None, params={"key": "ID"}) as made:
            create = CreateKeyedStreamOperator(task_id="it", stream="by_key", on="s.reloaded", keys=keys)
            create >> ConsumeStreamOperator(task_id="take", stream="by_key", target="s.reloads", write_as="append")
        return made

    assert run_dag(dag()).returned("it")["created"] is True
    made = get_stream(hook.open_store(), "by_key")
    assert made.keys == ("id",)
    lake.sql("INSERT OVERWRITE {t} VALUES (2, 'zwei'), (1, 'one')", "s.reloaded")
    for _ in range(2):
        assert run_dag(dag()).state == "success"
    assert lake.rows("s.reloads") == [(2, "two", "DELETE"), (2, "zwei", "INSERT")]
    assert lake.version("s.reloaded") == 2


@pytest.mark.parametrize(
    ("keys", "named"), [("nothing", "InvalidArgument"), ("{{ '' }}", "InvalidArgument"), ("id", "StreamExists")]
)
def test_keys_that_do_not_fit_are_said_by_name(
    run_dag: RunDag, source: str, said: Callable[[], str], keys: Any, named: str
) -> None:
    assert run_dag(one(CreateStreamOperator, "by_row_id", stream="by_row_id", on="s.source")).state == "success"
    stream = "by_row_id" if named == "StreamExists" else "x"
    dag = one(CreateKeyedStreamOperator, "refused_keys", stream=stream, on="s.source", keys=keys)
    assert run_dag(dag).task("it") == "failed"
    assert named in said()
