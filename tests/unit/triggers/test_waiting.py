"""Deferred waits: they fire, keep their deadline, hand errors on, and never hold up the triggerer. No mock of ours."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.guarantees.synthetic_tables import SyntheticTable
from tests.postgresql import PASSWORD, PostgresServer
from tests.unit.triggers.sea import Asked, Sea, Ticker, fired, in_seconds, threads_of_triggers
from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument
from tidemark.streams.worker.risks import Limit, risk_report
from tidemark.streams.worker.sources import open_table
from tidemark.streams.worker.streams import drop_stream, get_stream
from tidemark.triggers._poller import LOG_THREADS
from tidemark.triggers._waiting import answer_within
from tidemark.triggers.stale import StreamStaleTrigger
from tidemark.triggers.streams import StreamHasDataTrigger


def waits(stream: str = "s", seconds: float = 20, **more: Any) -> StreamHasDataTrigger:
    return StreamHasDataTrigger(stream=stream, end=in_seconds(seconds), **{"poll_interval": 0.1, **more})


def test_it_fires_when_data_arrives_and_not_for_a_commit_without_any(sea: Sea) -> None:
    async def commits() -> None:
        sea.source.optimize()
        await asyncio.sleep(0.4)
        sea.source.append()

    began = time.monotonic()
    assert fired(waits("S"), commits) == {
        "status": "found",
        "value": {"stream": "s", "offset": 0, "head": 2, "behind": 2},
    }
    assert time.monotonic() - began >= 0.4


def test_it_follows_a_table_that_is_renamed_while_it_waits(sea: Sea) -> None:
    async def renamed() -> None:
        sea.source.path = shutil.move(sea.source.path, sea.source.path.with_name("renamed"))
        sea.source.log = sea.source.path / "_delta_log"
        await asyncio.sleep(0.4)
        sea.source.append()

    assert fired(waits(), renamed)["status"] == "found"
    assert get_stream(sea.world.store, "s").source.path == f"file://{sea.source.path}"


def test_initial_rows_that_are_owed_are_data(sea: Sea) -> None:
    sea.stream("owing", initial_rows=True)
    assert fired(waits("owing"))["status"] == "found"


def test_the_deadline_is_a_time_of_the_clock(sea: Sea) -> None:
    began = time.monotonic()
    assert fired(waits(seconds=0.5)) == {"status": "timeout", "problem": None}
    assert 0.4 < time.monotonic() - began < 60


def test_what_is_there_when_the_time_is_over_is_still_found(sea: Sea) -> None:
    sea.source.append()
    assert fired(waits(seconds=-60))["status"] == "found"


@pytest.mark.parametrize(
    ("happens", "named", "said"),
    [
        (lambda sea: drop_stream(sea.world.store, "s", "test"), "StreamNotFound", "does not exist"),
        (lambda sea: sea.source.replace(), "SourceRecreated", "recreate the stream"),
        (lambda sea: _make_anew(sea), "SourceRecreated", "recreate the stream"),
        (lambda sea: shutil.rmtree(sea.source.path), "TableNotFound", "No table exists"),
        (lambda sea: _cut(sea), "StreamStale", "has become stale"),
    ],
    ids=["dropped", "replaced", "made anew at the same version", "vanished", "stale"],
)
def test_what_waiting_cannot_help_comes_back_at_once(
    sea: Sea, happens: Callable[[Sea], None], named: str, said: str
) -> None:
    async def soon() -> None:
        await asyncio.sleep(0.3)  # it is waiting, and has seen the table as it was
        happens(sea)

    event = fired(waits(seconds=60), soon)
    assert (event["status"], event["error"]["error"]) == ("failed", named)
    assert said in event["message"]
    assert json.loads(json.dumps(event)) == event


def _make_anew(sea: Sea) -> None:
    """By two renames, so that hardly a look falls between the end of the one table and the beginning of the other."""
    anew = SyntheticTable(sea.source.path.with_name("anew"))
    sea.source.path.rename(sea.source.path.with_name("gone"))
    anew.path.rename(sea.source.path)


def _cut(sea: Sea) -> None:
    for _ in range(3):
        sea.source.optimize()  # nothing to deliver, so that nothing is found before the cut
    sea.source.checkpoint()
    sea.source.clean_up(before=3)


def test_with_keep_on_every_error_is_waited_out(sea: Sea, said: Callable[[], str]) -> None:
    event = fired(waits("nobody", seconds=2, keep_on=True))
    assert event["status"] == "timeout"
    assert event["problem"]
    assert "cannot be asked now" in said()
    assert "'nobody' does not exist" in said()


def test_a_store_that_goes_away_is_waited_for(
    sea: Sea,
    postgresql: PostgresServer,
    migrated_database: str,
    monkeypatch: pytest.MonkeyPatch,
    said: Callable[[], str],
) -> None:
    url = postgresql.url(postgresql.new_database(migrated_database))
    connection = {"conn_type": "tidemark", "extra": {"control_store": url}}
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", json.dumps(connection))
    store = sea.world.store = ControlStore(url)
    store.migrate()
    sea.stream("kept")

    async def goes_away() -> None:
        await asyncio.sleep(0.3)
        await asyncio.to_thread(postgresql.stop)
        while "cannot be asked now" not in said():
            await asyncio.sleep(0.05)
        await asyncio.to_thread(postgresql.start)
        sea.tables["kept"].append()

    ticker = Ticker()
    assert fired(waits("kept", seconds=60), goes_away, ticker)["status"] == "found"
    assert "cannot be reached" in said()
    assert PASSWORD not in said()
    assert len(ticker.ticks) > 5  # it was away for more than five seconds, of which the machine may sleep some


@pytest.mark.parametrize(
    ("conn_id", "later"), [("mine", None), ("mine", "{"), ("tidemark_default", "{")], ids=["gone", "broken", "default"]
)
def test_a_connection_that_cannot_be_read_again_is_used_as_before(
    conn_id: str, later: str | None, sea: Sea, monkeypatch: pytest.MonkeyPatch, said: Callable[[], str]
) -> None:
    name = f"AIRFLOW_CONN_{conn_id.upper()}"
    monkeypatch.setenv(name, os.environ["AIRFLOW_CONN_TIDEMARK_DEFAULT"])
    monkeypatch.setattr("tidemark.triggers._poller._SETTINGS_KEPT", 0.0)

    async def goes_away() -> None:
        await asyncio.sleep(0.3)
        monkeypatch.delenv(name) if later is None else monkeypatch.setenv(name, later)
        while "is used as before" not in said():
            await asyncio.sleep(0.05)
        sea.source.append()

    assert fired(waits(conn_id=conn_id, seconds=60), goes_away)["status"] == "found"


def test_a_storage_that_does_not_answer_is_waited_for(sea: Sea, said: Callable[[], str]) -> None:
    sea.source.append()
    log, hidden, way = sea.source.log, sea.source.path / "hidden", sea.source.path / "way"
    log.rename(hidden)
    log.symlink_to(log)  # every access is an OSError: too many levels of symbolic links
    way.symlink_to(hidden)

    async def mended() -> None:
        while "did not return" not in said():
            await asyncio.sleep(0.05)
        way.replace(log)

    assert fired(waits(seconds=60), mended)["status"] == "found"


def test_the_loop_goes_on_while_a_lake_is_slow(sea: Sea, slow: Callable[[float], list[Asked]]) -> None:
    sea.stream("far", scheme="slow")
    sea.tables["far"].append()
    asked, ticker = slow(0.3), Ticker()
    assert fired(waits("far"), ticker=ticker)["status"] == "found"
    assert ticker.went_on_beside(asked)


def test_a_log_that_hangs_holds_up_neither_the_loop_nor_the_deadline(
    sea: Sea, slow: Callable[[float], list[Asked]], hung: threading.Event
) -> None:
    """The event comes while the log still hangs, which the loop's thread has not touched."""
    sea.stream("far", scheme="slow")
    asked, began = slow(0), time.monotonic()
    try:
        event = fired(waits("far", seconds=1))
    finally:
        waiting = threads_of_triggers()
        hung.set()
    assert event["status"] == "timeout"
    assert "no answer" in event["problem"]
    assert time.monotonic() - began < 50  # the log hangs for 60
    assert asked
    assert "MainThread" not in {one.thread for one in asked}
    of_logs = [name for name in waiting if name.startswith("tidemark-trigger-log")]
    assert len(of_logs) == 1  # for the stream, however often it was asked for
    assert len(waiting) <= 2  # and one that asks the store


def test_a_table_that_hangs_leaves_threads_to_the_others_however_many_streams_it_has(
    sea: Sea, hung: threading.Event
) -> None:
    far = SyntheticTable(sea.world.root / "far")
    for number in range(2 * LOG_THREADS):
        sea.stream(f"far_{number}", table=far, scheme="slow")
    sea.source.append()

    async def run() -> list[Any]:
        stuck = [asyncio.ensure_future(_next(waits(f"far_{number}"))) for number in range(2 * LOG_THREADS)]
        await asyncio.sleep(0.5)
        found = await _next(waits())
        hung.set()
        far.append()
        return [found, *await asyncio.gather(*stuck)]

    assert {event["status"] for event in asyncio.run(run())} == {"found"}


def test_a_table_that_hangs_leaves_a_risk_report_on_the_others(sea: Sea, hung: threading.Event) -> None:
    far = SyntheticTable(sea.world.root / "far")
    for number in range(2 * LOG_THREADS):
        sea.stream(f"far_{number}", table=far, scheme="slow")
    sea.stream("gone")
    shutil.rmtree(sea.tables["gone"].path)
    limit, patience = Limit(timedelta(hours=1)), timedelta(seconds=2)
    found = risk_report(sea.world.store, None, open_table, limit, patience=patience)
    hung.set()
    assert [one.stream for one in found.at_risk] == ["gone"]
    assert {problem for _, problem in found.unknown} == {"its lake has not answered for 2 s"}
    assert len(found.unknown) == 2 * LOG_THREADS


def test_a_pipe_in_place_of_a_commit_is_named_at_once(sea: Sea) -> None:
    sea.source.append()
    newest = max(sea.source.log.glob("*.json"))
    newest.unlink()
    os.mkfifo(newest)
    event = fired(waits())
    assert (event["status"], event["error"]["error"]) == ("failed", "NotAFile")
    assert newest.name in event["message"]


def test_many_streams_share_threads_and_queries(sea: Sea, queries: list[str]) -> None:
    for number in range(150):
        sea.stream(f"many_{number}", table=sea.source)
    most = 0

    async def all_wait() -> None:
        nonlocal most
        tasks = [asyncio.ensure_future(_next(waits(f"many_{number}"))) for number in range(150)]
        for _ in range(100):  # threads that have nothing to do end
            await asyncio.sleep(0.01)
            most = max(most, len(threads_of_triggers()))
        queries.clear()
        sea.source.append()
        assert {event["status"] for event in await asyncio.gather(*tasks)} == {"found"}

    asyncio.run(all_wait())
    assert 0 < most <= LOG_THREADS + 1
    assert 0 < sum("FROM tidemark_stream" in query for query in queries) < 75


async def _next(trigger: StreamHasDataTrigger) -> Any:
    return (await anext(aiter(trigger.run()))).payload  # type: ignore[arg-type]


def test_whoever_cancels_leaves_nothing_behind_and_disturbs_nobody(sea: Sea) -> None:
    async def run() -> Any:
        one, other = (asyncio.ensure_future(_next(waits())) for _ in range(2))
        await asyncio.sleep(0.3)
        one.cancel()
        await asyncio.gather(one, return_exceptions=True)
        assert one.cancelled()
        sea.source.append()
        return await other

    assert asyncio.run(run())["status"] == "found"  # and the fixture counts the threads that are left


@pytest.mark.parametrize("steps", range(6))
def test_a_cancellation_is_heard_even_as_the_answer_comes(steps: int) -> None:
    async def run() -> None:
        asked: Future[int] = Future()
        waiting = asyncio.ensure_future(answer_within(asked, 10))
        await asyncio.sleep(0)
        asked.set_result(1)
        for _ in range(steps):
            await asyncio.sleep(0)
        if waiting.cancel():  # it had not ended by then
            await asyncio.gather(waiting, return_exceptions=True)
            assert waiting.cancelled()
        assert not asked.cancelled()

    asyncio.run(run())


def test_it_survives_the_triggerer_and_keeps_its_deadline(sea: Sea) -> None:
    """As Airflow does it: what `serialize` says is encrypted, stored, and made a trigger again in another process."""
    from airflow.models.trigger import Trigger  # noqa: TID251 - as Airflow keeps it

    for trigger in (
        waits(seconds=2.5, longest_interval=3, keep_on=True),
        StreamStaleTrigger(stream=("s", "t"), hours_left=3, end=in_seconds(5), poll_interval=1),
    ):
        path, arguments = trigger.serialize()
        kept = Trigger._decrypt_kwargs(Trigger.encrypt_kwargs(arguments))
        assert kept == arguments
        assert type(trigger)(**kept).serialize() == (path, arguments)
    path, arguments = waits(seconds=1).serialize()
    code = (
        "import asyncio, importlib, json, sys\n"
        "module, _, name = sys.argv[1].rpartition('.')\n"
        "trigger = getattr(importlib.import_module(module), name)(**json.loads(sys.argv[2]))\n"
        "async def run(): return (await anext(aiter(trigger.run()))).payload\n"
        "print(json.dumps([trigger.end.isoformat(), asyncio.run(run())]))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, path, json.dumps(arguments)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    end, event = json.loads(ran.stdout.splitlines()[-1])
    assert end == arguments["end"]
    assert event == {"status": "timeout", "problem": None}
    assert datetime.now(UTC) >= datetime.fromisoformat(end)


def test_a_deadline_without_a_zone_is_refused() -> None:
    for end in (datetime(2026, 1, 1), "2026-01-01T00:00:00", "tomorrow"):  # noqa: DTZ001
        with pytest.raises(InvalidArgument, match="with a zone"):
            StreamHasDataTrigger(stream="s", end=end)
    with pytest.raises(InvalidArgument, match="poll_interval"):
        waits(poll_interval=0)


def test_a_stream_in_danger_fires_with_what_the_sensor_returns(sea: Sea) -> None:
    trigger = StreamStaleTrigger(stream=None, hours_left=200, end=in_seconds(20), poll_interval=0.1)
    (one,) = fired(trigger)["value"]
    assert (one["stream"], one["reason"]) == ("s", None)
    assert 160 < one["hours_left"] < 169
    calm = StreamStaleTrigger(stream="s", hours_left=1, end=in_seconds(0.3), poll_interval=0.1)
    assert fired(calm)["status"] == "timeout"
    nobody = StreamStaleTrigger(stream=["nobody"], hours_left=1, end=in_seconds(20))
    assert fired(nobody)["error"]["error"] == "StreamNotFound"
