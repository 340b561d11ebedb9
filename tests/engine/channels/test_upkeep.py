"""Channels that nobody uses are removed, and no other."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime

import pytest

from tests.engine.channels.landing import Landing
from tests.until import wait_until
from tidemark.channels.driver.job_keep_channels import keep_channels
from tidemark.channels.driver.keeping import Upkeeper
from tidemark.channels.driver.service.desk import IngestDesk
from tidemark.channels.driver.service.messages import OpenRequest
from tidemark.channels.driver.service.upkeep_rounds import kept_tables
from tidemark.channels.driver.upkeep import Upkeep
from tidemark.channels.model.jobs import KeepChannels, ServeIngest
from tidemark.channels.worker.tables import channels_by_table
from tidemark.errors import ChannelInvalid, TableNotFound
from tidemark.jobs.context import JobContext
from tidemark.jobs.progress import Progress

pytestmark = pytest.mark.spark

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_an_idle_channel_is_swept_and_its_writer_is_told(landing: Landing) -> None:
    landing.create()
    with landing.client() as client:
        idle, busy = (client.open_channel(name, "orders") for name in ("idle", "busy"))
        idle.insert_rows([{"id": 1}], "1")
        idle.flush()
        time.sleep(0.01)
        since = datetime.now(UTC)
        busy.insert_rows([{"id": 2}], "2")
        busy.flush()
        assert client.idle_channels("orders", idle_since=since) == ["IDLE"]
        assert client.sweep("orders", idle_since=since) == ["IDLE"]
        assert client.sweep("orders", idle_since=since) == []
        assert list(landing.records()) == ["BUSY"]
        idle.insert_rows([{"id": 3}], "3")
        with pytest.raises(ChannelInvalid, match="code 19"):
            idle.flush()
        assert client.open_channel("idle", "orders").offset_token is None
    assert landing.rows(columns="id") == [(1,), (2,)]


def test_a_token_counts_as_use(landing: Landing) -> None:
    landing.create()
    with landing.client() as client:
        channel = client.open_channel("c", "orders")
        since = datetime.now(UTC)
        time.sleep(0.01)
        channel.insert_rows([], "1")
        channel.flush()
        assert client.sweep("orders", idle_since=since) == []


def test_tables_with_channels_are_found_by_their_logs_and_a_bad_one_hides_none(landing: Landing) -> None:
    for table in ("without", "with"):
        landing.create(table)
    with landing.client() as client:
        client.open_channel("c", "with")
    (landing.root / "broken" / "_delta_log").mkdir(parents=True)
    (landing.root / "broken" / "_delta_log" / f"{0:020}.json").write_text("half of a li")
    assert list(channels_by_table(["broken", "with", "without"], landing.log)) == ["with"]


def test_upkeep_goes_on_after_any_failure(landing: Landing) -> None:
    landing.create()
    said: list[str] = []
    failures = iter([ConnectionResetError("the driver hung up")])

    def locate(table: str) -> str:
        for failure in failures:
            raise failure
        return landing.uri(table)

    with landing.client() as client:
        desk = IngestDesk(client, landing.records)
        desk.open("orders", "c", OpenRequest(), "app")
        job = JobContext(landing.spark, None, {}, Progress(list, said.append), NOW, lambda: None)  # type: ignore[arg-type]
        request = ServeIngest(lake_root=str(landing.root), tokens_file="none", keep_hours=1 / 36_000)
        with kept_tables(job, request, Upkeeper(landing.spark, client, {}), desk, locate):
            wait_until(lambda: len(said) > 1)
    assert said[0].startswith("orders was not kept")
    assert "ConnectionResetError: the driver hung up" in said[0]
    assert said[1] == "orders: 0 idle channels removed, 0 files became 0"


def test_a_bad_table_leaves_none_of_the_others_unkept(landing: Landing) -> None:
    for table in ("first", "last"):
        landing.create(table)
    landing.spark.sql(f"CREATE TABLE delta.`{landing.root}/bad` (id BIGINT) USING delta")
    job = JobContext(landing.spark, None, {}, Progress(list, list), NOW, lambda: None)  # type: ignore[arg-type]
    found = keep_channels(job, KeepChannels(str(landing.root), ("first", "missing", "bad", "last"), "a test"))
    assert [one.table for one in found.tables] == ["first", "last"]
    assert [problem.partition(":")[0] for problem in found.failed.values()] == ["TableNotFound", "TableNotSupported"]
    with pytest.raises(TableNotFound):
        keep_channels(job, KeepChannels(str(landing.root), ("missing",), "a test"))


def test_histories_and_quarantines_are_compacted_and_their_logs_shortened(landing: Landing) -> None:
    landing.create()
    places = [landing.root / name for name in ("orders__channel_history", "bad")]
    for number in range(3):
        with landing.client(history=True) as client:
            channel = client.open_channel("c", "orders", on_error="continue", quarantine="bad")
            channel.insert_rows([{"id": "x"}], str(number))
    with landing.client() as client:
        Upkeeper(landing.spark, client, {}).keep("orders", landing.uri("orders"), NOW)
    for place in places:
        assert landing.sql("DESCRIBE DETAIL {t}", place.name)[0].numFiles == 1
        assert list((place / "_delta_log").glob("*.checkpoint*"))  # commits before it leave with their retention
    assert len(landing.rows("bad")) == 3


def test_work_that_fails_in_an_unforeseen_way_ends_no_other(caplog: pytest.LogCaptureFixture) -> None:
    upkeep, done = Upkeep(), []
    upkeep.do(lambda: done.append(1 // 0))
    upkeep.do(lambda: done.append(1))
    upkeep.stop()
    assert done == [1]
    assert "ZeroDivisionError" in caplog.text


def test_upkeep_removes_commits_that_the_log_retention_lets_go(landing: Landing) -> None:
    hours = "interval 1 hours"
    landing.create(delta__logRetentionDuration=hours, delta__deletedFileRetentionDuration=hours)
    with landing.client() as client:
        channel = client.open_channel("c", "orders")
        for number in range(12):
            channel.insert_rows([{"id": number}], str(number))
            channel.flush()
        log = landing.root / "orders" / "_delta_log"
        wait_until(lambda: (log / "_last_checkpoint").exists())
        for file in log.iterdir():
            os.utime(file, (file.stat().st_mtime - 3 * 86_400,) * 2)
        upkeeper = Upkeeper(landing.spark, client, {}, compact=False)
        upkeeper.keep("orders", landing.uri("orders"), NOW)
        assert not (log / f"{0:020d}.json").exists()
        assert landing.log().earliest() > 0
        left = sorted(log.glob("*.json"))
        upkeeper.keep("orders", landing.uri("orders"), NOW)
        assert sorted(log.glob("*.json")) == left
        channel.insert_rows([{"id": 12}], "12")
        channel.flush()
        assert landing.token("C") == "12"
    assert len(landing.rows()) == 13
