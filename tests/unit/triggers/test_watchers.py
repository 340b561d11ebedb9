"""Watchers: no wake-up is missed, none is endless, and nothing but their removal ends them."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.unit.triggers.sea import Asked, AssetState, Sea, Ticker, in_seconds
from tidemark.assets import stream_asset, stream_data_asset
from tidemark.errors import InvalidArgument
from tidemark.streams.worker.streams import drop_stream
from tidemark.triggers.watchers import StreamDataEventTrigger

Acts = Callable[["Watcher"], Awaitable[None]]


class Watcher:
    """A watcher as the triggerer runs it, with the state that Airflow keeps for it."""

    def __init__(self, state: AssetState, **more: Any) -> None:
        self.state = state
        self.more = {"stream": "s", "poll_interval": 0.1, **more}
        self.said: list[dict[str, Any]] = []
        self.ticker = Ticker()

    def run(self, acts: Acts, watch: int = 1, *, taken_away: bool = False) -> list[dict[str, Any]]:
        """The payloads of the events while `acts` go on; afterwards the triggerer is gone, or the watcher is."""
        self.said, self.before = [], self.state.writes

        trigger = StreamDataEventTrigger(**self.more)
        trigger.trigger_id = watch
        trigger.asset_state_store = self.state  # type: ignore[assignment]

        async def watch_it() -> None:
            async for event in trigger.run():  # type: ignore[attr-defined]
                self.said.append(event.payload)

        async def both() -> None:
            watching, ticking = asyncio.ensure_future(watch_it()), asyncio.ensure_future(self.ticker.run())
            try:
                await acts(self)
                assert not watching.done(), watching.exception()
            finally:
                watching.cancel()
                ticking.cancel()
                await asyncio.gather(watching, ticking, return_exceptions=True)
                if taken_away:
                    await trigger.on_kill()

        asyncio.run(both())
        return self.said

    async def hears(self, count: int) -> None:
        """Waits until `count` events are there and kept, and that no more come in the next few looks."""
        until = in_seconds(20)
        while min(len(self.said), self.state.writes - self.before) < count:
            assert datetime.now(UTC) < until, self.said
            await asyncio.sleep(0.02)
        await self.looks()
        assert len(self.said) == count, self.said

    async def looks(self) -> None:
        await asyncio.sleep(0.5)

    async def says(self, text: str, said: Callable[[], str]) -> None:
        """Waits until the watcher has logged `text`, and for the next few looks."""
        until = in_seconds(20)
        while text not in said():
            assert datetime.now(UTC) < until, said()
            await asyncio.sleep(0.02)
        await self.looks()


@pytest.fixture
def watcher(sea: Sea) -> Watcher:
    return Watcher(AssetState())


def test_each_offset_is_announced_once_and_what_a_run_leaves_wakes_again(sea: Sea, watcher: Watcher) -> None:
    async def acts(watcher: Watcher) -> None:
        await watcher.looks()
        assert watcher.said == []
        sea.source.append()
        await watcher.hears(1)
        sea.source.append()
        await watcher.hears(1)  # the same run will read it, or leave it
        sea.consume("a")
        sea.source.optimize()
        await watcher.hears(1)  # nothing is left, and a commit without data is none
        sea.source.append()
        await watcher.hears(2)

    first, second = watcher.run(acts)
    assert (first["stream"], first["offset"], first["head"], first["reason"]) == ("s", 0, 1, "data")
    assert 0 <= first["lag"] < 10
    assert (second["offset"], second["head"]) == (2, 4)
    assert json.loads(json.dumps(first)) == first


def test_a_restart_repeats_nothing_and_misses_nothing(sea: Sea, watcher: Watcher) -> None:
    async def one(watcher: Watcher) -> None:
        await watcher.hears(1)

    async def none(watcher: Watcher) -> None:
        await watcher.hears(0)

    sea.source.append()
    assert len(watcher.run(one)) == 1
    assert watcher.run(none) == []  # the triggerer was restarted
    sea.consume("a")
    sea.source.append()  # while it was down
    (event,) = watcher.run(one)
    assert (event["offset"], event["head"]) == (1, 2)


def test_what_nobody_consumes_is_announced_again_but_not_at_every_look(sea: Sea) -> None:
    async def acts(watcher: Watcher) -> None:
        until = in_seconds(30)
        while len(watcher.said) < 2 and datetime.now(UTC) < until:
            await asyncio.sleep(0.02)
        await watcher.looks()

    sea.source.append()
    began = time.monotonic()
    said = Watcher(AssetState(), renew_after=1).run(acts)
    assert [event["reason"] for event in said[:2]] == ["data", "again"]
    assert 2 <= len(said) <= 1 + time.monotonic() - began


def test_while_a_transaction_holds_the_stream_nobody_is_woken_again(sea: Sea) -> None:
    async def held(watcher: Watcher) -> None:
        await watcher.hears(1)
        await asyncio.sleep(1.0)

    async def again(watcher: Watcher) -> None:
        await watcher.hears(1)

    sea.source.append()
    sea.world.clock.now = datetime.now(UTC)
    sea.world.begin("runs", sea.world.writes(0))
    watcher = Watcher(AssetState(), renew_after=0.4)
    assert [event["reason"] for event in watcher.run(held)] == ["data"]
    sea.world.store.write(lambda c: c.exec_driver_sql("UPDATE tidemark_transaction SET lease_until = '2020-01-01'"))
    long_ago(watcher.state)
    patient = Watcher(watcher.state, renew_after=60)
    assert [event["reason"] for event in patient.run(again)] == ["again"]  # its worker is dead


def long_ago(state: AssetState) -> None:
    """What was announced last was announced two minutes earlier."""
    kept = state.kept["tidemark.announced"]
    kept["at"] = (datetime.fromisoformat(kept["at"]) - timedelta(minutes=2)).isoformat()


def test_a_resumed_dag_is_told_what_is_there(sea: Sea, watcher: Watcher) -> None:
    async def one(watcher: Watcher) -> None:
        await watcher.hears(1)

    sea.source.append()
    watcher.run(one, watch=1)
    long_ago(watcher.state)
    assert len(watcher.run(one, watch=2, taken_away=True)) == 1  # pausing removes the watcher, resuming makes another
    long_ago(watcher.state)
    assert len(watcher.run(one, watch=2)) == 1  # SQLite gives a number that is free to the next


def test_a_quiet_stream_is_kept_from_becoming_stale(sea: Sea) -> None:
    async def one(watcher: Watcher) -> None:
        await watcher.hears(1)

    (event,) = Watcher(AssetState(), keep_fresh_after=4).run(one)
    assert (event["reason"], event["offset"], event["lag"]) == ("keep_fresh", 0, None)


def test_nothing_that_is_wrong_ends_the_watcher(sea: Sea, watcher: Watcher, said: Callable[[], str]) -> None:
    async def acts(watcher: Watcher) -> None:
        drop_stream(sea.world.store, "s", "test")
        await watcher.says("'s' does not exist", said)
        sea.world.stream("s")
        sea.source.append()
        await watcher.hears(1)
        shutil.move(sea.source.log, sea.world.root / "away")
        await watcher.says("No table exists", said)
        shutil.move(sea.world.root / "away", sea.source.log)
        sea.consume("a")
        sea.source.append()
        await watcher.hears(2)

    watcher.run(acts)
    heard = said()
    assert heard.count("'s' does not exist") == 1  # said once, not at every look
    assert heard.count("can be read again") == 2


def test_the_loop_goes_on_while_a_watched_lake_is_slow(sea: Sea, slow: Callable[[float], list[Asked]]) -> None:
    sea.stream("far", scheme="slow")
    sea.tables["far"].append()
    asked = slow(0.3)
    watcher = Watcher(AssetState(), stream="far")
    assert len(watcher.run(lambda watcher: watcher.hears(1))) == 1
    assert watcher.ticker.went_on_beside(asked)


def test_airflow_tells_watchers_apart_by_what_they_watch() -> None:
    from airflow.serialization.encoders import encode_trigger

    def identity(**more: Any) -> int:
        encoded = encode_trigger(stream_data_asset("s", **more).watchers[0].trigger)
        return StreamDataEventTrigger.hash(encoded["classpath"], encoded["kwargs"])

    assert identity() == identity(poll_interval=30) == identity(poll_interval=30.0)
    assert identity() != identity(poll_interval=31)
    assert identity() != identity(conn_id="other")


def test_assets_of_streams_do_not_meet_whatever_their_names() -> None:
    made = [
        stream_data_asset("s"),
        stream_data_asset("t", conn_id="s"),
        stream_data_asset("s/t"),
        stream_data_asset("t/s", conn_id="x"),
        stream_data_asset("s", conn_id="x/t"),
        stream_asset("s"),
        stream_asset("data.s"),
    ]
    assert len({asset.name for asset in made}) == len({asset.uri for asset in made}) == len(made)
    assert all(asset.name.isascii() for asset in (*made, stream_data_asset("żółw")))


def test_intervals_that_are_none_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="renew_after"):
        stream_data_asset("s", renew_after=0)
