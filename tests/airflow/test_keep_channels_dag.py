"""The nightly DAG that keeps landing tables: all tables with channels, or those that are named. And changes by hand."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG

from tests.airflow.runs import Lake
from tests.object_store import BUCKET, running_object_store
from tidemark.channels.driver.client import IngestClient
from tidemark.channels.driver.kernel import KernelEngine
from tidemark.errors import InvalidArgument
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import StreamMode
from tidemark.operators.alter_channel import AlterChannelOperator
from tidemark.operators.keep_channels import KeepChannelsOperator
from tidemark.streams.worker.streams import create_stream

if TYPE_CHECKING:
    from tests.airflow.runs import Outcome

pytestmark = [pytest.mark.airflow, pytest.mark.spark]

LOG_STORE = "spark.delta.logStore.s3.impl"
DAGS = Path(__file__).parents[2] / "dags"


@pytest.fixture
def dag(monkeypatch: pytest.MonkeyPatch) -> DAG:
    monkeypatch.syspath_prepend(str(DAGS))
    found: DAG = importlib.import_module("keep_channels").dag
    return found


@pytest.fixture
def landing(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, airflow_home: Path) -> Lake:
    """A lake of its own with a landing table, and a table without channels."""
    tables = dict.fromkeys(("a.landed", "a.other"), "id BIGINT")
    return Lake.of_its_own(lake.spark, tmp_path, monkeypatch.setenv, tables)


def test_only_tables_with_channels_are_kept_and_without_any_the_run_does_nothing(
    dag: DAG, landing: Lake, run_dag: Callable[..., Outcome], warm_spark: Path
) -> None:
    quiet = run_dag(dag, at=datetime(2026, 11, 1, tzinfo=UTC))
    assert (quiet.state, quiet.task("keep")) == ("success", "skipped")
    engine = KernelEngine.of_session(landing.spark)
    long_ago = datetime.now(UTC) - timedelta(days=40)
    for clock in (lambda: long_ago, lambda: datetime.now(UTC)):
        write_rows(landing, engine, clock)
    history = "a.landed__channel_history"
    assert len(landing.rows(history)) == 2
    kept = run_dag(dag, at=datetime(2026, 11, 2, tzinfo=UTC))
    assert kept.state == "success"
    ((only,),) = [kept.returned("keep")]
    wanted = {"table": "a.landed", "swept": [], "idle": [], "files_removed": 4, "files_added": 1}
    assert dict(only) == wanted
    assert landing.rows("a.landed") == [(0,), (0,), (1,), (1,)]
    (day,) = [row[0] for row in landing.rows(history)]
    assert day > (long_ago + timedelta(days=30)).date()


def test_a_bad_table_fails_the_task_after_the_others_are_kept(
    landing: Lake, run_dag: Callable[..., Outcome], warm_spark: Path
) -> None:
    write_rows(landing, KernelEngine.of_session(landing.spark), lambda: datetime.now(UTC))
    with DAG("keep_two", schedule=None) as dag:
        KeepChannelsOperator(task_id="it", tables="a.missing, a.landed", log_hours=48)
    assert run_dag(dag).state == "failed"
    landed = DeltaLog.open(str(landing.root / "a" / "landed")).state()
    assert "delta.logRetentionDuration" in landed.metadata.configuration


def test_tables_on_s3_are_passed_over_with_the_reason_unless_commits_are_safe(
    dag: DAG,
    landing: Lake,
    run_dag: Callable[..., Outcome],
    warm_spark: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """If commits are safe, the job looks for the table, which does not exist."""
    away = f"s3://{BUCKET}/landed"

    def kept(day: int, *tables: str, **params: Any) -> Outcome:
        return run_dag(dag, at=datetime(2026, 11, day, tzinfo=UTC), conf={"tables": list(tables), **params})

    write_rows(landing, KernelEngine.of_session(landing.spark), lambda: datetime.now(UTC))
    with running_object_store() as store:
        extra = {"lake_root": str(landing.root), "storage_options": store.options}
        connection = json.dumps({"conn_type": "tidemark", "extra": extra})
        monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", connection)
        some = kept(3, away, "a.landed")
        assert (some.state, [one["table"] for one in some.returned("keep")]) == ("success", ["a.landed"])
        none = kept(4, away)
        assert (none.state, none.task("keep")) == ("success", "skipped")
        assert "Delta has no conditional writes" in capfd.readouterr().out
        assert kept(5, away, only_writer=True).task("keep") == "failed"
        landing.spark.conf.set(LOG_STORE, "io.delta.storage.AzureLogStore")  # plays one that coordinates
        try:
            assert kept(6, away).task("keep") == "failed"
        finally:
            landing.spark.conf.unset(LOG_STORE)


def write_rows(landing: Lake, engine: KernelEngine, clock: Callable[[], datetime]) -> None:
    """Two commits of a channel, and a row in the history of that time."""
    place = "file://{}/a/{}".format
    with IngestClient("app", engine, lambda table: place(landing.root, table), options={}, clock=clock) as client:
        channel = client.open_channel("c", "landed")
        for number in range(2):
            channel.insert_rows([{"id": number}], str(number))
            channel.flush()


def altered(run_dag: Callable[..., Outcome], action: str, token: str | None = None) -> Outcome:
    with DAG(f"alter_{action}", schedule=None) as dag:
        AlterChannelOperator(task_id="it", table="a.landed", channel="c", action=action, token=token)
    return run_dag(dag)


def test_a_channel_is_opened_moved_and_dropped_by_hand(
    landing: Lake, run_dag: Callable[..., Outcome], warm_spark: Path
) -> None:
    unknown = altered(run_dag, "set_token", "1")
    assert unknown.state == "failed"
    names = ("existed", "token_before", "token")
    wanted = {
        ("open", None): (False, None, None),
        ("set_token", "7"): (True, None, "7"),
        ("open", "8"): (True, "7", "8"),
        ("open", "None"): (True, "8", "8"),
        ("set_token", None): (True, "8", None),
        ("drop", None): (True, None, None),
    }
    for (action, token), expected in wanted.items():
        found = altered(run_dag, action, token).returned("it")
        assert tuple(found[name] for name in names) == expected
    assert altered(run_dag, "drop").returned("it")["existed"] is False
    assert landing.rows("a.landed") == []


def test_commits_stay_in_the_log_as_long_as_is_wanted_and_longer_for_a_stream(
    landing: Lake, run_dag: Callable[..., Outcome], warm_spark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept(hours: float | None) -> str | None:
        with DAG("keep_log", schedule=None) as dag:
            KeepChannelsOperator(task_id="it", tables="a.landed", compact=False, log_hours=hours)
        assert run_dag(dag).state == "success"
        state = DeltaLog.open(str(landing.root / "a" / "landed")).state()
        return state.metadata.configuration.get("delta.logRetentionDuration")

    write_rows(landing, KernelEngine.of_session(landing.spark), lambda: datetime.now(UTC))
    assert [kept(None), kept(50)] == [None, "interval 168 hours"]  # as long as removed files
    shorter = "'delta.deletedFileRetentionDuration' = 'interval 1 day'"
    landing.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ({shorter})", "a.landed")
    assert [kept(50), kept(49.5)] == ["interval 50 hours", "interval 50 hours"]
    hook = TidemarkHook()
    source = hook.table("a.landed")
    create_stream(hook.open_store(), name="s", source=source, mode=StreamMode.APPEND_ONLY, at_version=1, who="a test")
    commit = landing.root / "a" / "landed" / "_delta_log" / f"{1:020}.json"
    five_days = (datetime.now(UTC) - timedelta(days=5)).timestamp()
    for file in (commit.with_name(f"{0:020}.json"), commit):
        os.utime(file, (five_days, five_days))
    assert kept(48) == f"interval {7 * 24} hours"
    with pytest.raises(InvalidArgument, match="48 or more"):
        KeepChannelsOperator(task_id="it", tables="a.landed", log_hours=10)
