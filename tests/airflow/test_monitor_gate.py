"""The gate between the page and a store: few at once, each for a while, and nobody after a failure until one tries."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastapi import HTTPException
from sqlalchemy.exc import DataError, StatementError

from tidemark.errors import StoreBusy, StoreNotMigrated, StreamNotFound
from tidemark.plugins.monitor.connections import STORE_THREADS, MonitoredConnection
from tidemark.plugins.monitor.gate import Gate, Gates
from tidemark.streams.worker.threads import OwnThreads

BUSY = StoreBusy(url="postgresql://h/d", problem="canceling statement due to lock timeout")
LONG = 60


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """Whatever a test keeps waiting ends with it."""
    event = threading.Event()
    yield event
    event.set()


def gate(clock: Clock, **more: float) -> Gate:
    def nowhere(conn_id: str) -> MonitoredConnection:
        return MonitoredConnection(conn_id, None, lambda _: pytest.fail("no lake is asked"))

    return Gate("c", open_at=nowhere, clock=clock, **more)  # type: ignore[arg-type]


def failing(error: Exception) -> Callable[[MonitoredConnection], None]:
    def work(_: MonitoredConnection) -> None:
        raise error

    return work


def refused(gate: Gate) -> HTTPException:
    with pytest.raises(HTTPException) as refusal:
        asyncio.run(gate.ask(lambda _: pytest.fail("nobody was to be let in")))
    assert refusal.value.status_code == 503
    return refusal.value


def test_who_comes_when_it_is_full_is_refused_at_once_with_a_time_to_come_again(
    clock: Clock, released: threading.Event
) -> None:
    full = gate(clock, most=STORE_THREADS + 2)

    async def crowd() -> list[object]:
        inside = [asyncio.ensure_future(full.ask(lambda _: released.wait(LONG))) for _ in range(STORE_THREADS + 2)]
        await asyncio.sleep(0)
        late = await asyncio.gather(*(full.ask(lambda _: "in") for _ in range(50)), return_exceptions=True)
        released.set()
        return [*late, *await asyncio.gather(*inside)]

    found = asyncio.run(crowd())
    refusals = [one for one in found if isinstance(one, HTTPException)]
    assert (len(refusals), found[50:]) == (50, [True] * (STORE_THREADS + 2))
    assert {(one.status_code, (one.headers or {})["Retry-After"]) for one in refusals} == {(503, "5")}


@pytest.mark.parametrize("how", [failing(BUSY), failing(TimeoutError("the secrets backend"))])
def test_after_a_failure_nobody_is_let_in_until_the_pause_is_over_and_one_has_tried(
    clock: Clock, how: Callable[[MonitoredConnection], None]
) -> None:
    paused = gate(clock, pause=5)
    for _ in range(2):  # the one that tries may fail as well
        with pytest.raises((StoreBusy, HTTPException)):
            asyncio.run(paused.ask(how))
        refused(paused)
        clock.now += 4.9
        refused(paused)
        clock.now += 0.2

    async def several() -> list[object]:
        return await asyncio.gather(*(paused.ask(lambda _: "in") for _ in range(9)), return_exceptions=True)

    found = asyncio.run(several())
    assert (found[0], {type(one) for one in found[1:]}) == ("in", {HTTPException})
    assert asyncio.run(several()) == ["in"] * 9


def test_work_that_does_not_end_is_given_up_and_is_no_way_in_for_others(
    clock: Clock, released: threading.Event
) -> None:
    slow = gate(clock, patience=0.01)
    with pytest.raises(HTTPException, match="does not answer"):
        asyncio.run(slow.ask(lambda _: released.wait(LONG)))
    refused(slow)


@pytest.mark.parametrize(
    "answer",
    [
        StreamNotFound(stream="s"),
        StoreNotMigrated(url="sqlite:///x", found=None, needed="1"),
        HTTPException(404, "No stream has that name."),
        StatementError("date value out of range", "SELECT ?", {}, OverflowError()),
        DataError("SELECT ?", {}, ValueError("integer out of range")),
    ],
)
def test_an_answer_that_is_an_error_is_an_answer(clock: Clock, answer: Exception) -> None:
    well = gate(clock)
    for _ in range(3):
        with pytest.raises(type(answer)):
            asyncio.run(well.ask(failing(answer)))
    assert asyncio.run(well.ask(lambda monitored: monitored.conn_id)) == "c"
    with pytest.raises(StoreBusy):
        asyncio.run(well.ask(failing(BUSY)))
    clock.now += 6
    with pytest.raises(type(answer)):
        asyncio.run(well.ask(failing(answer)))

    async def several() -> list[object]:
        return await asyncio.gather(*(well.ask(lambda _: "in") for _ in range(9)))

    assert asyncio.run(several()) == ["in"] * 9


def test_each_connection_has_a_gate_of_its_own() -> None:
    gates = Gates()
    assert gates.to("a") is gates.to("a")
    assert gates.to("a") is not gates.to("b")


def test_threads_are_few_each_thing_has_fewer_and_what_was_cancelled_is_forgotten(released: threading.Event) -> None:
    threads = OwnThreads("test", most=4, each=2)
    hanging = [threads.submit(lambda: released.wait(LONG), about={"bad"}) for _ in range(20)]
    assert [threads.submit(lambda n=n: n, about={f"good{n % 3}"}).result(LONG) for n in range(9)] == list(range(9))
    assert [one.running() for one in hanging] == [True] * 2 + [False] * 18
    assert [one.cancel() for one in hanging] == [False] * 2 + [True] * 18
    assert threads.submit(lambda: "good").result(LONG) == "good"
    assert not threads._waiting
    released.set()
    assert [one.result(LONG) for one in hanging[:2]] == [True, True]
    assert threads.submit(lambda: "bad", about={"bad"}).result(LONG) == "bad"


def test_what_is_about_several_things_waits_for_each_of_them_and_frees_each() -> None:
    threads = OwnThreads("test", most=4, each=1)
    both_may_end, a_may_end = threading.Event(), threading.Event()
    both = threads.submit(lambda: both_may_end.wait(LONG), about={"a", "b"})
    a = threads.submit(lambda: a_may_end.wait(LONG), about={"a"})
    b = threads.submit(lambda: "b", about={"b"})
    assert threads.submit(lambda: "c", about={"c"}).result(LONG) == "c"
    assert (a.running(), b.done()) == (False, False)
    both_may_end.set()
    assert (both.result(LONG), b.result(LONG)) == (True, "b")  # while `a` hangs
    a_may_end.set()
    assert a.result(LONG)


def test_after_a_close_nothing_begins_and_what_is_under_way_ends(released: threading.Event) -> None:
    threads = OwnThreads("test", most=1, each=1)
    hanging = threads.submit(lambda: released.wait(LONG), about={"a"})
    waiting = [threads.submit(lambda: "never", about={thing}) for thing in ("a", "b", "b")]
    threads.close()
    assert [one.cancelled() for one in (*waiting, threads.submit(lambda: "never"))] == [True] * 4
    released.set()
    assert hanging.result(LONG)


def test_room_that_a_cancelled_one_held_goes_to_the_next(released: threading.Event) -> None:
    threads = OwnThreads("test", most=1, each=1)
    hanging = threads.submit(lambda: released.wait(LONG))
    first, second = (threads.submit(lambda n=n: n, about={"a"}) for n in (1, 2))
    assert first.cancel()
    released.set()
    assert (hanging.result(LONG), second.result(LONG)) == (True, 2)


def test_what_hangs_does_not_keep_python_from_ending(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "import threading\n"
        "from tidemark.streams.worker.threads import OwnThreads\n"
        "begun = threading.Event()\n"
        "OwnThreads('test', most=1).submit(lambda: (begun.set(), threading.Event().wait()))\n"
        "begun.wait()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=LONG, cwd=tmp_path)
