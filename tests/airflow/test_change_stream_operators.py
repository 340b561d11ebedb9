"""Tasks that make, alter and drop change streams: worker and logs only, no JVM."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from tests.airflow.runs import Outcome
from tests.unit.lake.delta_directories import commit, singers
from tidemark.change_streams.worker.backfill import begin_backfill, finish_backfill
from tidemark.change_streams.worker.definitions import get_change_stream, list_change_streams
from tidemark.errors import ChangeStreamNotFound
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.operators.backfill import BackfillTableOperator
from tidemark.operators.capture import CaptureChangesOperator
from tidemark.operators.change_streams import (
    AlterChangeStreamOperator,
    CreateChangeStreamOperator,
    DropChangeStreamOperator,
)
from tidemark.operators.partitions import FinishPartitionsOperator
from tidemark.operators.stream_sql import StreamSQLOperator

pytestmark = pytest.mark.airflow
RunDag = Callable[..., Outcome]
StandIn = Callable[[str], Path]


@pytest.fixture
def music(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lake and a store of its own: singers with a key, albums without one."""
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path / "lake"))
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", f"sqlite:///{tmp_path}/control.db")
    singers(tmp_path / "lake", "music.singers", key="SingerId", versions=3)
    singers(tmp_path / "lake", "music.albums")
    return tmp_path / "lake"


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Callable[[], str]:
    return lambda: " ".join((caplog.text + capfd.readouterr().out).split())


def one(operator: type[Any], dag_id: str, **arguments: Any) -> DAG:
    params = {"name": "Names", "watch": {"music.singers": ["LastName"]}, "flag": True}
    with DAG(dag_id, schedule=None, params=params, render_template_as_native_obj="native" in dag_id) as dag:
        operator(task_id="it", **arguments)
    return dag


def test_a_change_stream_is_made_kept_altered_suspended_and_dropped_without_spark(
    run_dag: RunDag, music: Path, hook: TidemarkHook, spark_submit: StandIn
) -> None:
    started = spark_submit("exit 9")
    make = one(
        CreateChangeStreamOperator,
        "make",
        change_stream="{{ params.name }}",
        watch={"music.singers": ["LastName"], "music.albums": []},
        keys={"music.albums": ["SingerId"]},
        options={"retention_period": "7d", "exclude_insert": "{{ params.flag }}"},
        initial_partitions="4",
    )
    facts = {"change_stream": "Names", "everything": False, "tables": ["music.singers", "music.albums"], "left_out": []}
    assert run_dag(make).returned("it") == {**facts, "created": True}
    made = get_change_stream(hook.open_store(), "names")
    assert [(one.columns, one.captured) for one in made.tables] == [(("LastName",), 2), ((), 0)]
    assert (made.options.retention.days, made.options.exclude_insert) == (7, True)
    assert made.log_path.startswith(f"file://{music}/_tidemark/change_streams/")

    assert run_dag(make).returned("it") == {**facts, "created": False}
    other = one(CreateChangeStreamOperator, "other", change_stream="NAMES", watch="ALL")
    assert run_dag(other).returned("it") == {**facts, "created": False}
    assert get_change_stream(hook.open_store(), "names") == made

    alter = one(
        AlterChangeStreamOperator, "alter", change_stream="names", watch=["music.singers"],
        options={"exclude_insert": "None", "value_capture_type": "NEW_ROW"},
    )  # fmt: skip
    for _ in range(2):
        assert run_dag(alter).returned("it")["tables"] == ["music.singers"]
    altered = get_change_stream(hook.open_store(), "names")
    assert altered.options.given == ("retention_period", "value_capture_type")

    suspend = one(AlterChangeStreamOperator, "suspend", change_stream="names", suspend="{{ params.flag }}")
    assert run_dag(suspend).returned("it")["tables"] == []

    log = Path(made.log_path.removeprefix("file://"))
    commit(log, 0)
    drop = one(DropChangeStreamOperator, "drop", change_stream="names")
    assert [run_dag(drop).returned("it") for _ in range(2)] == [True, False]
    assert not log.exists()
    with pytest.raises(ChangeStreamNotFound):
        get_change_stream(hook.open_store(), "names")
    assert not started.exists()


def test_a_capture_for_all_takes_up_tables_that_came_later_from_their_first_version(
    run_dag: RunDag, music: Path, hook: TidemarkHook, spark_submit: StandIn
) -> None:
    spark_submit("exit 9")
    singers(music, "music.nameless")
    keys = {"music.albums": ["SingerId"]}
    make = one(CreateChangeStreamOperator, "make_all", change_stream="everything", watch="ALL", keys=keys)
    alter = one(AlterChangeStreamOperator, "alter_all", change_stream="everything", watch="ALL")
    for dag in (make, make, alter):
        made = run_dag(dag).returned("it")
        assert (made["tables"], made["left_out"]) == (["music.albums", "music.singers"], ["music.nameless"])
    capture = one(CaptureChangesOperator, "capture_all", change_stream="everything")
    nothing = {"change_stream": "everything", "batch": None, "left_out": ["music.nameless"]}
    assert run_dag(capture).returned("it") == nothing
    singers(music, "music.concerts", key="SingerId")
    assert run_dag(capture).task("it") == "failed", "the stand-in of Spark fails; the batch is written ahead"
    stored = get_change_stream(hook.open_store(), "everything").tables
    assert [one.captured for one in stored if one.table.name == "music.concerts"] == [-1]


def test_a_backfill_that_is_done_starts_no_spark_and_until_then_nothing_is_handed_out(
    run_dag: RunDag, music: Path, hook: TidemarkHook, spark_submit: StandIn
) -> None:
    started = spark_submit("exit 9")
    singers(music, "music.mirror")
    run_dag(one(CreateChangeStreamOperator, "make_source", change_stream="s", watch="music.singers"))
    backfill = one(
        BackfillTableOperator, "backfill", change_stream="s", consumer_group="g", table="music.singers",
        target="music.mirror",
    )  # fmt: skip
    assert run_dag(backfill).task("it") == "failed"
    assert started.exists()
    started.unlink()
    finish = one(FinishPartitionsOperator, "finish", change_stream="s", consumer_group="g")
    assert run_dag(finish).returned("it")["paused"] is True

    store = hook.open_store()
    finish_backfill(store, begin_backfill(store, "s", "g", "music.singers", hook.table("music.mirror")), 3)
    done = run_dag(backfill).returned("it")
    assert (done["version"], done["rows"], done["found"]) == (2, 3, True)
    assert run_dag(finish).returned("it")["paused"] is False
    assert not started.exists()


def test_the_statements_of_spanner_are_run_by_a_task_and_a_retry_of_them_finds_its_work_done(
    run_dag: RunDag, music: Path, hook: TidemarkHook, spark_submit: StandIn
) -> None:
    started = spark_submit("exit 9")

    def run(number: int, sql: str) -> list[dict[str, str]]:
        rows: list[dict[str, str]] = run_dag(one(StreamSQLOperator, f"sql_{number}", sql=sql)).returned("it")
        return rows

    create = "CREATE CHANGE STREAM IF NOT EXISTS s FOR music.Singers(LastName) OPTIONS (retention_period = '7d')"
    assert run(1, create) == [{"status": "Change stream s successfully created."}]
    assert run(2, create) == [{"status": "s already exists, statement succeeded."}]
    run(3, "ALTER CHANGE STREAM s SET FOR music.singers()")
    run(4, "ALTER CHANGE STREAM s SET OPTIONS (exclude_insert = true, retention_period = NULL)")
    made = get_change_stream(hook.open_store(), "s")
    assert (made.tables[0].columns, made.options.given) == ((), ("exclude_insert",))
    run(5, "ALTER CHANGE STREAM s DROP FOR ALL")
    assert get_change_stream(hook.open_store(), "s").tables == ()
    for status in ("s successfully dropped.", "Drop statement executed successfully (s already dropped)."):
        assert run(6, "DROP CHANGE STREAM IF EXISTS s") == [{"status": status}]
    assert run_dag(one(StreamSQLOperator, "refused_sql", sql="DROP CHANGE STREAM s")).task("it") == "failed"
    assert not started.exists()


def test_none_as_a_template_renders_it_is_left_out(run_dag: RunDag, music: Path, hook: TidemarkHook) -> None:
    none = "{{ none }}"
    make = one(CreateChangeStreamOperator, "make_none", change_stream="s", watch=none, keys=none)
    assert run_dag(make).returned("it")["tables"] == []
    run_dag(one(AlterChangeStreamOperator, "watch_none", change_stream="s", watch="music.singers", restart=none))
    left = {"watch": none, "keys": none, "restart": none, "options": {"exclude_insert": True}}
    altered = run_dag(one(AlterChangeStreamOperator, "alter_none", change_stream="s", **left))
    assert altered.returned("it")["tables"] == ["music.singers"]
    assert get_change_stream(hook.open_store(), "s").options.exclude_insert


def test_a_watch_list_may_be_rendered(run_dag: RunDag, music: Path, hook: TidemarkHook) -> None:
    dag = one(CreateChangeStreamOperator, "native_watch", change_stream="s", watch="{{ params.watch }}")
    assert run_dag(dag).returned("it")["tables"] == ["music.singers"]
    assert get_change_stream(hook.open_store(), "s").tables[0].columns == ("LastName",)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"watch": "music.nowhere"}, "ChangeStreamRefused"),
        ({"watch": ["music.singers", "music.albums"]}, "ChangeStreamRefused"),
        ({"watch": {"music.singers": ["SingerId"]}}, "ChangeStreamRefused"),
        ({"watch": "music.singers", "options": {"retention_period": "{{ '1h' }}"}}, "ChangeStreamRefused"),
        ({"watch": "music.singers", "options": {"exclude_insert": "{{ 'perhaps' }}"}}, "ChangeStreamRefused"),
        ({"watch": "music.singers", "options": ["{{ 'exclude_insert' }}"]}, "InvalidArgument"),
        ({"watch": "music.singers", "keys": ["Age"]}, "InvalidArgument"),
        ({"watch": "music.untracked"}, "RowTrackingDisabled"),
        ({"change_stream": "{{ 'no name' }}"}, "InvalidArgument"),
    ],
)
def test_what_cannot_be_is_said_by_name_and_nothing_is_made(
    run_dag: RunDag, music: Path, hook: TidemarkHook, said: Callable[[], str], arguments: dict[str, Any], named: str
) -> None:
    singers(music, "music.untracked", key="SingerId", **{"delta.enableRowTracking": "false"})
    dag = one(CreateChangeStreamOperator, "refused", **{"change_stream": "s", **arguments})
    assert run_dag(dag).task("it") == "failed"
    assert named in said()
    assert list_change_streams(hook.open_store()) == ()


@pytest.mark.parametrize(
    ("operator", "arguments", "named"),
    [
        (AlterChangeStreamOperator, {"watch": "ALL"}, "ChangeStreamNotFound"),
        (AlterChangeStreamOperator, {"watch": "ALL", "suspend": "{{ True }}"}, "InvalidArgument"),
        (AlterChangeStreamOperator, {"suspend": "{{ 'perhaps' }}"}, "InvalidArgument"),
        (AlterChangeStreamOperator, {"suspend": "{{ True }}", "restart": "music.singers"}, "InvalidArgument"),
        (AlterChangeStreamOperator, {"restart": "music.singers"}, "ChangeStreamNotFound"),
        (DropChangeStreamOperator, {"if_exists": False}, "ChangeStreamNotFound"),
    ],
)
def test_one_that_is_not_there_is_not_altered_or_dropped_unsaid(
    run_dag: RunDag, music: Path, said: Callable[[], str], operator: type[Any], arguments: dict[str, Any], named: str
) -> None:
    assert run_dag(one(operator, "nobody", change_stream="nobody", **arguments)).task("it") == "failed"
    assert named in said()


def test_what_a_task_returns_is_json(run_dag: RunDag, music: Path) -> None:
    dag = one(CreateChangeStreamOperator, "plain", change_stream="s", watch="music.singers")
    assert json.loads(json.dumps(run_dag(dag).returned("it")))["tables"] == ["music.singers"]
