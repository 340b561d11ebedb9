"""Streams that fail, or stand still although there is data, are told of as stale ones are; a DAG looks at them all."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from tests.airflow.command_line import Said, run_airflow
from tests.airflow.monitored import Monitored
from tests.airflow.runs import Outcome
from tests.guarantees.synthetic_tables import SyntheticTable
from tests.guarantees.world import key_of
from tidemark.errors import InvalidArgument, StorageUnreachable, VersionVacuumed
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.lake.storage import Storage
from tidemark.model.streams import StreamMode, TableRef
from tidemark.notifications.stale_stream import StaleStreamNotifier
from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.rebase import RebaseStreamOperator
from tidemark.sensors.stale import StreamStaleSensor, limit_of
from tidemark.streams.worker.statistics import count_failure, stream_health
from tidemark.streams.worker.streams import advance_stream, create_stream, get_stream, stream_history

pytestmark = pytest.mark.airflow
RunDag = Callable[..., Outcome]
DAGS = Path(__file__).parents[2] / "dags"
GONE = VersionVacuumed(table="shop.payments", start=1, end=2, count=1, first="part-1")


@pytest.fixture
def monitored(airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Monitored:
    made = Monitored(tmp_path / "lake", f"sqlite:///{tmp_path}/control.db")
    made.store.migrate()
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", made.url)
    return made


@pytest.fixture
def shop(monitored: Monitored) -> Monitored:
    """`customers` has 10 hours left, `returns` has lost its source, `stock` was made anew; `payments` fails."""
    monitored.fill()
    for run in ("r1", "r2", "r3"):
        count_failure(monitored.store, ["payments"], GONE, run=key_of(run))
    return monitored


def looked(run_dag: RunDag, dag_id: str, **arguments: Any) -> dict[str, dict[str, Any]]:
    with DAG(dag_id, schedule=None) as dag:
        StreamStaleSensor(task_id="watch", poke_interval=0.1, timeout=0.1, soft_fail=True, **arguments)
    ran = run_dag(dag)
    return {} if ran.task("watch") == "skipped" else {one["stream"]: one for one in ran.returned("watch")}


def test_a_stream_that_fails_again_and_again_is_at_risk_if_that_is_asked(run_dag: RunDag, shop: Monitored) -> None:
    assert looked(run_dag, "unasked", stream="payments") == {}
    assert looked(run_dag, "not_yet", stream="payments", failures=4) == {}
    found = looked(run_dag, "fails", stream="payments", failures="{{ 3 }}")["payments"]
    assert (found["risks"], found["failures_in_row"], found["reason"]) == (["failing"], 3, None)
    assert found["last_error"] == f"VersionVacuumed: {GONE}"


def test_a_failing_stream_is_told_of_even_where_its_lake_does_not_answer(
    run_dag: RunDag, shop: Monitored, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(self: Storage, *_: str) -> list[str]:
        raise StorageUnreachable(place=self.uri, problem="timed out")

    monkeypatch.setattr(Storage, "names", gone)
    assert set(looked(run_dag, "no_lake", failures=3, unmoved_hours=1)) == {"payments", "stock"}


def test_an_offset_that_stands_still_although_there_is_data_is_at_risk_if_that_is_asked(
    run_dag: RunDag, shop: Monitored
) -> None:
    watch = {"stream": ["customers", "payments", "clicks"], "hours_left": 0}
    assert looked(run_dag, "not_asked", **watch) == {}
    found = looked(run_dag, "stuck", unmoved_hours=100, **watch)
    assert [(name, one["risks"]) for name, one in found.items()] == [("customers", ["stuck"])]
    assert 157 < found["customers"]["unmoved_hours"] < 159
    assert set(looked(run_dag, "owed", unmoved_hours=1, **watch)) == {"customers", "clicks"}  # its rows at the start


def test_idle_versions_and_data_that_has_just_come_do_not_make_a_stream_stuck(run_dag: RunDag, shop: Monitored) -> None:
    table = shop.tables["customers"]
    advance_stream(shop.store, "customers", table.head(), "ana", "seen")
    shop._clock(hours=30)
    advance_stream(shop.store, "customers", table.head(), "ana", "seen")
    table.optimize()
    shop._date(table)
    assert looked(run_dag, "idle", stream="customers", hours_left=0, unmoved_hours=12) == {}
    shop._clock(hours=1)
    table.append()
    shop._date(table)
    assert looked(run_dag, "new", stream="customers", hours_left=0, unmoved_hours=12) == {}


def test_the_trigger_asks_the_same_as_the_sensor(shop: Monitored) -> None:
    sensor = StreamStaleSensor(task_id="w", stream="payments", hours_left=0, failures="3", unmoved_hours="12.5")
    path, arguments = sensor.trigger(end=datetime(2026, 1, 1, tzinfo=UTC)).serialize()
    assert path.endswith("StreamStaleTrigger")
    assert (arguments["failures"], arguments["unmoved_hours"]) == (3, 12.5)


@pytest.mark.parametrize("wrong", [{"failures": "often"}, {"failures": 0}, {"unmoved_hours": "long"}])
def test_what_cannot_be_is_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=next(iter(wrong))):
        limit_of(24, wrong.get("failures"), wrong.get("unmoved_hours"))
    assert limit_of(24, "none", "") == limit_of("24", None, None)


def test_the_notifier_tells_of_failing_and_stuck_streams_in_words(shop: Monitored, tmp_path: Path) -> None:
    file = tmp_path / "told"
    StaleStreamNotifier(
        stream=["payments", "customers"], hours_left=0, failures=3, unmoved_hours=100,
        tell="tests.airflow.notified.KeepsIt", tell_kwargs={"file": str(file), "text": "{{ stale_message }}"},
    )({})  # fmt: skip
    said = file.read_text()
    assert "Stream 'payments' could not be consumed in 3 attempts in a row, the last time for VersionVacuumed" in said
    assert "Stream 'customers' on shop.customers has had changes for 158.0 hours" in said


def test_a_deadline_that_was_missed_is_told_even_where_no_stream_is_at_risk(
    monitored: Monitored, tmp_path: Path
) -> None:
    import asyncio

    file = tmp_path / "told"
    arguments = {
        "tell": "tests.airflow.notified.KeepsIt",
        "tell_kwargs": {"file": str(file), "text": "{{ stale_message }}"},
    }
    context: Any = {
        "dag_run": {"dag_id": "watch_stale_streams", "dag_run_id": "scheduled__1"},
        "deadline": {"id": "d", "deadline_time": "2026-01-01T00:30:00Z"},
    }
    asyncio.run(StaleStreamNotifier(**arguments).async_notify(context))  # type: ignore[arg-type]
    assert not file.exists()
    asyncio.run(StaleStreamNotifier(always=True, **arguments).async_notify(context))  # type: ignore[arg-type]
    assert file.read_text().splitlines() == [
        "The run scheduled__1 of watch_stale_streams has not ended by 2026-01-01T00:30:00Z.",
        "No stream is at risk.",
    ]


@pytest.fixture
def watching(monkeypatch: pytest.MonkeyPatch) -> DAG:
    """The DAG as its file has it; dag.test() cannot run one with a deadline."""
    monkeypatch.syspath_prepend(str(DAGS))
    dag: DAG = importlib.import_module("watch_stale_streams").dag
    monkeypatch.setattr(dag, "deadline", None)
    return dag


def instances(ran: Outcome) -> dict[str, str]:
    found = [ti for ti in ran.run.get_task_instances() if ti.task_id == "watch"]
    return {str(ti.rendered_map_index): str(ti.state) for ti in found}


def test_the_dag_looks_at_each_stream_by_its_name_and_tells_of_those_at_risk(
    run_dag: RunDag, shop: Monitored, watching: DAG, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    ran = run_dag(watching)
    assert ran.state == "success"
    well, at_risk = ("clicks", "order_changes"), ("customers", "payments", "returns", "stock")
    assert instances(ran) == {**dict.fromkeys(well, "skipped"), **dict.fromkeys(at_risk, "success")}
    assert sorted(ran.returned("alert")) == sorted(at_risk)
    assert "could not be consumed in 3 attempts in a row" in caplog.text + capfd.readouterr().out


def test_without_streams_there_is_nothing_to_do_and_without_risk_nothing_to_tell(
    run_dag: RunDag, monitored: Monitored, watching: DAG
) -> None:
    ran = run_dag(watching, at=datetime(2026, 2, 1, tzinfo=UTC))
    assert (ran.state, ran.task("alert")) == ("success", "skipped")
    monitored.many(1)
    ran = run_dag(watching, at=datetime(2026, 2, 2, tzinfo=UTC))
    assert (ran.state, instances(ran), ran.task("alert")) == ("success", {"bulk_0000": "skipped"}, "skipped")


def test_more_streams_than_airflow_maps_over_are_looked_at_in_groups(
    run_dag: RunDag, monitored: Monitored, watching: DAG, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "2")
    monitored.many(5)
    count_failure(monitored.store, ["bulk_0004"], GONE, run=key_of("r"))
    for run in ("a", "b"):
        count_failure(monitored.store, ["bulk_0004"], GONE, run=key_of(run))
    ran = run_dag(watching, at=datetime(2026, 2, 3, tzinfo=UTC))
    assert instances(ran) == {"bulk_0000, bulk_0001, bulk_0002": "skipped", "bulk_0003, bulk_0004": "success"}
    assert ran.returned("alert") == ["bulk_0004"]


def test_a_look_that_fails_fails_the_run_and_keeps_no_other_stream_from_being_told_of(
    run_dag: RunDag, shop: Monitored, watching: DAG, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidemark.errors import StreamNotFound

    poke = StreamStaleSensor.poke

    def dropped_meanwhile(self: StreamStaleSensor, context: Any) -> Any:
        if self.stream == "clicks":
            raise StreamNotFound(stream="clicks")
        return poke(self, context)

    monkeypatch.setattr(StreamStaleSensor, "poke", dropped_meanwhile)
    for task in watching.tasks:
        monkeypatch.setattr(task, "retry_delay", timedelta())
    ran = run_dag(watching, at=datetime(2026, 2, 4, tzinfo=UTC))
    assert (ran.state, instances(ran)["clicks"]) == ("failed", "failed")
    assert sorted(ran.returned("alert")) == ["customers", "payments", "returns", "stock"]


def test_the_watch_has_a_deadline_that_tells_in_any_case() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(DAGS)!r}); import watch_stale_streams as w, recreate_stale_stream;"
        "(alert,) = w.dag.deadline; print(alert.interval, alert.callback.path, alert.callback.kwargs['always']);"
        "print(sorted({'pyspark', 'sqlalchemy', 'tidemark.control'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert said[-2] == "0:30:00 tidemark.notifications.stale_stream.StaleStreamNotifier True"
    assert "pyspark" not in said[-1]


@pytest.fixture
def source(hook: TidemarkHook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SyntheticTable:
    """With a commit that the stream `s` has not read."""
    monkeypatch.setenv("TIDEMARK_CONTROL_STORE", f"sqlite:///{tmp_path}/own.db")
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path / "lake"))
    table = SyntheticTable(tmp_path / "lake/a/source")
    SyntheticTable(tmp_path / "lake/a/target")
    table.append()
    ref = TableRef("a.source", table.uri, table.table_id)
    create_stream(TidemarkHook().open_store(), name="s", source=ref, mode=StreamMode.STANDARD, at_version=0, who="me")
    return table


def test_failed_attempts_of_a_task_are_counted_with_their_error_and_a_success_ends_the_row(
    run_dag: RunDag, source: SyntheticTable, spark_submit: Callable[[str], Path]
) -> None:
    store = TidemarkHook().open_store()
    spark_submit("echo broken; exit 1")
    with DAG("fails_twice", schedule=None) as dag:
        ConsumeStreamOperator(
            task_id="deliver", stream="s", target="a.target", write_as="append", retries=1, retry_delay=timedelta()
        )
    assert run_dag(dag).state == "failed"
    found = stream_health(store, "s")
    assert (found.failures, found.failures_in_row) in ((1, 1), (2, 2))
    assert found.last_error_type in ("JobDied", "JobLeftNoResult", "JobFailed")
    assert found.last_error
    assert str(found.last_failed_run).startswith("fails_twice/")


@pytest.mark.parametrize(("dry_run", "failures"), [("{{ 1 == 2 }}", 1), ("{{ 1 == 1 }}", 0)])
def test_a_template_of_dry_run_says_whether_a_failed_attempt_is_counted(
    run_dag: RunDag, source: SyntheticTable, dry_run: str, failures: int
) -> None:
    with DAG(f"tries_{failures}", schedule=None) as dag:
        ConsumeStreamOperator(task_id="deliver", stream="s", target="a.nothing", write_as="append", dry_run=dry_run)
    assert run_dag(dag).state == "failed"
    assert stream_health(TidemarkHook().open_store(), "s").failures == failures


def test_a_task_puts_a_stream_on_the_table_that_lies_there_now_once(run_dag: RunDag, source: SyntheticTable) -> None:
    store = TidemarkHook().open_store()
    with DAG("rebases", schedule=None) as dag:
        RebaseStreamOperator(task_id="rebase", stream="s", why="{{ 'loaded anew' }}", show_initial_rows="{{ True }}")
    at = datetime(2026, 3, 1, tzinfo=UTC)
    assert run_dag(dag, at=at).state == "failed"
    source.replace()
    ran = run_dag(dag, at=at)
    assert (ran.state, ran.returned("rebase")["version"]) == ("success", 2)
    stands = get_stream(store, "s")
    assert (stands.source.table_id, stands.initial_rows_pending) == (source.table_id, True)
    assert run_dag(dag, at=at).state == "success"
    assert get_stream(store, "s") == stands
    last = stream_history(store, "s")[-1]
    assert last.why.endswith(": loaded anew")
    assert last.who.startswith("rebases/")


def test_what_airflow_masks_is_not_in_the_error_that_is_kept(run_dag: RunDag, source: SyntheticTable) -> None:
    from airflow.sdk.log import mask_secret

    mask_secret("hunter2hunter2")
    with DAG("with_a_secret", schedule=None) as dag:
        ConsumeStreamOperator(task_id="deliver", stream="s", target="a.hunter2hunter2", write_as="append")
    assert run_dag(dag).state == "failed"
    found = stream_health(TidemarkHook().open_store(), "s")
    assert found.last_error_type == "TargetNotFound"
    assert "***" in str(found.last_error)
    assert "hunter2" not in str(found.last_error)


def tidemark(*arguments: str) -> Said:
    return run_airflow("tidemark", *arguments)


def test_the_command_line_shows_counters_and_follows_a_table_that_was_moved(source: SyntheticTable) -> None:
    store = TidemarkHook().open_store()
    count_failure(store, ["s"], GONE, run=key_of("r"))
    (listed,) = json.loads(tidemark("streams", "list", "--output", "json").stdout)
    assert (listed["failures_in_row"], listed["state"], listed["rows_delivered"]) == ("1", "failing", "0")
    (shown,) = json.loads(tidemark("streams", "show", "s", "--output", "json").stdout)
    assert (shown["failures"], shown["last_error_type"], shown["consumptions"]) == ("1", "VersionVacuumed", "0")
    assert (shown["state"], shown["transactions"]) == ("failing", [])
    before = get_stream(store, "s")
    source.path.rename(source.path.with_name("renamed"))
    refused = tidemark("streams", "relocate", "s", "--to", "a.target")
    assert refused.returncode == 1
    assert "RelocationRefused" in refused.stderr
    for _ in range(2):
        assert "reads a.renamed" in tidemark("streams", "relocate", "s", "--to", "a.renamed").stdout
    after = get_stream(store, "s")
    assert (after.uid, after.offset, after.source.name) == (before.uid, before.offset, "a.renamed")
