"""Waits for files of a pipe, and watchers of its location: no new file is missed, and no set is announced twice."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.unit.pipes.queues import Landing, Queue
from tests.unit.triggers.sea import AssetState, fired, in_seconds, threads_of_triggers
from tidemark.assets import pipe_files_asset, stream_data_asset
from tidemark.errors import InvalidArgument
from tidemark.pipes.worker import definitions
from tidemark.triggers import _announcing_files
from tidemark.triggers._announcing_files import AnnouncedFiles
from tidemark.triggers._poller import shared_poller
from tidemark.triggers.pipes import PipeFilesEventTrigger, PipePendingTrigger


@pytest.fixture
def landing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Landing]:
    """The pipe `p` on an empty directory. At the end no trigger has left a thread behind."""
    extra = {"control_store": f"sqlite:///{tmp_path}/control.db", "lake_root": str(tmp_path)}
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", json.dumps({"conn_type": "tidemark", "extra": extra}))
    yield Landing(tmp_path)
    until = in_seconds(5)
    while threads_of_triggers() and datetime.now(UTC) < until:
        time.sleep(0.02)
    assert threads_of_triggers() == []


def waits(seconds: float = 20, **more: Any) -> PipePendingTrigger:
    return PipePendingTrigger(**{"pipe": "p", "end": in_seconds(seconds), "poll_interval": 0.1, **more})


def test_a_wait_ends_when_enough_files_are_there(landing: Landing) -> None:
    async def come() -> None:
        landing.put("a.csv", "a.txt")
        await asyncio.sleep(0.5)
        landing.put("b.csv")

    event = fired(waits(at_least=2), come)
    assert (event["status"], event["value"]["files"], event["value"]["first"]) == ("found", 2, ["a.csv", "b.csv"])
    again = PipePendingTrigger(**waits(at_least=2, list_files=True).serialize()[1])
    assert (again.at_least, again.list_files, again.pipe) == (2, True, "p")


def test_a_wait_ends_for_a_batch_that_is_not_finished_and_not_for_a_paused_pipe(landing: Landing) -> None:
    Queue(landing.queue_place).put("planned", "a.csv", batches={"plans": 1})
    assert fired(waits())["value"]["unfinished"] is True
    definitions.pause_pipe(landing.store, "p", by="a test")
    landing.put("b.csv")
    assert fired(waits(seconds=0.5))["status"] == "timeout"


def test_a_pipe_or_a_directory_that_is_gone_fails_a_wait(landing: Landing) -> None:
    assert fired(waits(pipe="nobody"))["error"]["error"] == "PipeNotFound"
    landing.files.rmdir()
    assert fired(waits())["error"]["error"] == "StageLocationMissing"


def test_pipes_that_ask_together_share_the_listing_of_their_location(landing: Landing) -> None:
    names = ["p", *(f"p{number}" for number in range(5))]
    for name in names[1:]:
        landing.pipe(name, "")
    landing.put("a.csv")
    with shared_poller("tidemark_default") as poller:
        found = [poller.pipes.ask(name, list_files=None).result(timeout=20) for name in names]
        assert poller.pipes._looks.listings.requests == 1
    assert [one.count for one in found] == [1] * len(names)


class Watch:
    """A watcher of `p` as the triggerer runs it, with the state that Airflow keeps for it."""

    def __init__(self, state: AssetState, **more: Any) -> None:
        self.state, self.more = state, {"pipe": "p", "poll_interval": 0.1, **more}
        self.said: list[dict[str, Any]] = []

    def run(self, acts: Callable[[Watch], Awaitable[None]], watch: int = 1, *, removed: bool = False) -> list[int]:
        """The numbers of files in the events while `acts` go on."""
        self.said = []
        trigger = PipeFilesEventTrigger(**self.more)
        trigger.trigger_id = watch
        trigger.asset_state_store = self.state  # type: ignore[assignment]

        async def watch_it() -> None:
            async for event in trigger.run():  # type: ignore[attr-defined]
                self.said.append(event.payload)

        async def both() -> None:
            watching = asyncio.ensure_future(watch_it())
            try:
                await acts(self)
                assert not watching.done(), watching.exception()
            finally:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
                if removed:
                    await trigger.on_kill()

        asyncio.run(both())
        return [one["files"] for one in self.said]

    async def hears(self, count: int) -> None:
        """Waits for so many events, and that no more come in the next looks."""
        until = in_seconds(20)
        while len(self.said) < count:
            assert datetime.now(UTC) < until, self.said
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.8)
        assert len(self.said) == count, self.said


@pytest.fixture
def watch() -> Watch:
    return Watch(AssetState())


def test_each_set_of_files_is_announced_once_and_files_that_are_taken_are_no_news(
    landing: Landing, watch: Watch
) -> None:
    queue = Queue(landing.queue_place)

    async def acts(watch: Watch) -> None:
        await watch.hears(0)
        landing.put("a.csv", "b.csv")
        await watch.hears(1)
        queue.put("planned", "a.csv")
        await watch.hears(1)
        landing.put("old.csv")
        await watch.hears(2)
        queue.put("planned", "b.csv", "old.csv")
        await watch.hears(2)
        queue.put("queued", "a.csv", at=datetime.now(UTC) + timedelta(seconds=1))
        await watch.hears(3)

    assert watch.run(acts) == [2, 2, 1]
    assert {key: watch.said[0][key] for key in ("pipe", "first", "reason")} == {
        "pipe": "p", "first": ["a.csv", "b.csv"], "reason": "data",
    }  # fmt: skip


def test_a_restart_repeats_nothing_and_a_new_watcher_announces_again_after_a_minute(
    landing: Landing, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def once(watch: Watch) -> None:
        await watch.hears(1)

    async def never(watch: Watch) -> None:
        await watch.hears(0)

    landing.put("a.csv")
    assert watch.run(once) == [1]
    assert watch.run(never, removed=True) == []
    assert watch.run(never) == [], "within a minute"
    monkeypatch.setattr(_announcing_files, "_NEW_WATCHER", timedelta(0))
    assert watch.run(once, watch=2) == [1]


def test_files_that_nobody_takes_and_an_abandoned_batch_are_announced_again(
    landing: Landing, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_announcing_files, "_ABANDONED_AFTER", timedelta(seconds=2))
    queue = Queue(landing.queue_place)
    landing.put("a.csv")
    watch.more["renew_after"] = 1.5

    async def acts(watch: Watch) -> None:
        until = in_seconds(20)
        while len(watch.said) < 2:
            assert datetime.now(UTC) < until
            await asyncio.sleep(0.05)
        queue.put("planned", "a.csv", batches={"plans": 1})
        while watch.said[-1]["files"]:
            assert datetime.now(UTC) < until
            await asyncio.sleep(0.05)

    watch.run(acts)
    assert [one["reason"] for one in watch.said[:2]] == ["data", "again"]
    assert (watch.said[-1]["reason"], watch.said[-1]["unfinished"]) == ("again", True)


def test_a_watcher_outlives_the_absence_of_its_pipe_and_says_so_once(
    landing: Landing, watch: Watch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    watch.more["pipe"], printed = "q", [""]

    def heard_so_far() -> str:
        printed[0] += capfd.readouterr().out
        return " ".join((caplog.text + printed[0]).split())

    async def acts(watch: Watch) -> None:
        until = in_seconds(20)
        while "cannot be watched" not in heard_so_far():
            assert datetime.now(UTC) < until
            await asyncio.sleep(0.02)
        await watch.hears(0)
        landing.pipe("q", "")
        landing.put("a.csv")
        await watch.hears(1)

    watch.run(acts)
    heard = heard_so_far()
    assert heard.count("Pipe q cannot be watched, looking again: There is no pipe q") == 1
    assert "Pipe q can be read again" in heard


def test_a_state_of_another_release_is_no_state() -> None:
    for plain in (None, {}, {"files": "f"}, {"files": "f", "at": "2026-01-01T00:00:00", "watch": "1"}, [], 5):
        assert AnnouncedFiles.from_plain(plain) is None


def test_the_asset_of_a_pipe_has_one_watcher_and_a_place_of_its_own() -> None:
    asset = pipe_files_asset("shop.p", poll_interval=5)
    assert asset.uri == "x-tidemark://files/shop.p"
    assert asset.uri != stream_data_asset("shop.p").uri
    assert pipe_files_asset("shop.p", conn_id="other/one").uri == "x-tidemark://files/other%2Fone/shop.p"
    (watcher,) = asset.watchers
    kind, arguments = watcher.trigger.serialize()
    assert (kind, arguments["pipe"], arguments["poll_interval"]) == (
        "tidemark.triggers.pipes.PipeFilesEventTrigger", "shop.p", 5.0,
    )  # fmt: skip
    with pytest.raises(InvalidArgument):
        pipe_files_asset("p", poll_interval=0)
