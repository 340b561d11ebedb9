"""R23, R41: consumers that run at the same time, a writer going on meanwhile, get disjoint windows without a gap."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tidemark.control.store import utc_now
from tidemark.errors import StreamLocked, TidemarkError
from tidemark.streams.worker.outcomes import Consumed, Opened
from tidemark.streams.worker.streams import stream_transactions

from .world import World, key_of

COMMITS = 30
CONSUMED, REFUSED, BROKEN = 0, 10, 20


@pytest.fixture
def running(world: World) -> World:
    """The world with the wall clock."""
    world.clock = utc_now  # type: ignore[assignment]
    world.store.clock = utc_now
    return world


def test_consumers_at_the_same_time_get_disjoint_windows(running: World) -> None:
    world = running
    consumed: list[Consumed] = []
    locked = threading.Event()

    def write() -> None:
        for _ in range(COMMITS):
            world.source.append()
            time.sleep(0.01)

    def consume(consumer: int) -> None:
        run = 0
        while world.offset() < COMMITS:
            try:
                consumed.append(world.consume(f"{consumer}.{run}"))
                run += 1
            except StreamLocked:
                locked.set()
                time.sleep(0.01)

    threads = [threading.Thread(target=write), *(threading.Thread(target=consume, args=(n,)) for n in range(3))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert world.holds(0) == world.holds(1) == dict.fromkeys(range(1, COMMITS + 1), 1)
    windows = sorted((w.from_version, w.to_version) for c in consumed for w in c.result.windows if c.result.evidence)
    assert [start for start, _ in windows] == [0, *(end for _, end in windows[:-1])]
    assert windows[-1][1] == COMMITS
    assert locked.is_set()


def test_attempts_of_one_run_at_the_same_time_get_the_same_window(running: World) -> None:
    """Two schedulers that start one task twice: one window, one plan, one transaction."""
    running.source.append()
    begun = at_once([partial(running.begin, "one")] * 6)
    transactions = [found.transaction for found in begun if isinstance(found, Opened)]
    assert len(transactions) == 6
    assert all((t.windows, t.plan) == (transactions[0].windows, transactions[0].plan) for t in transactions)
    assert [t.key for t in stream_transactions(running.store, "s")] == [key_of("one")]


def test_runs_at_the_same_time_get_the_window_or_are_locked_out(running: World) -> None:
    running.source.append()
    begun = at_once([partial(running.begin, str(n)) for n in range(6)])
    assert sorted(type(found).__name__ for found in begun) == ["Opened", *["StreamLocked"] * 5]


def test_streams_taken_in_any_order_do_not_block_each_other_for_ever(running: World) -> None:
    """What one holds the other waits for: no deadlock is seen by a consumer, and both streams go on."""
    running.stream("t", "other")
    orders = (("s", "t"), ("t", "s"))
    for turn in range(5):
        running.source.append()
        running.sources["other"].append()
        ended = at_once([partial(running.consume, f"{turn}.{n}", streams=orders[n % 2]) for n in range(4)])
        assert {type(found) for found in ended} <= {Consumed, StreamLocked}
    while running.offset("s") < 5 or running.offset("t") < 5:
        running.consume(f"rest {running.offset('s')}", streams=("s", "t"))
    assert running.holds(0, "s") == running.holds(0, "t") == dict.fromkeys(range(1, 6), 1)


def test_consumers_of_different_streams_do_not_fail_each_other(running: World) -> None:
    names = [f"stream_{n}" for n in range(12)]
    for name in names:
        running.stream(name)
    running.source.append()
    ended = at_once([partial(running.consume, name, streams=(name,)) for name in names])
    assert [found for found in ended if not isinstance(found, Consumed)] == []
    assert {running.offset(name) for name in names} == {1}


def test_processes_that_consume_one_key_at_once_deliver_once(running: World) -> None:
    running.source.append()
    children = [_consuming_process(running) for _ in range(3)]
    ended = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    for table in running.by_uri.values():
        table.reload()
    assert set(ended) <= {CONSUMED, REFUSED}
    assert CONSUMED in ended
    running.consume("one")
    assert (running.holds(0), running.holds(1), running.offset()) == ({1: 1}, {1: 1}, 1)
    assert len(running.history()) == 2


def _consuming_process(world: World) -> int:
    child = os.fork()
    if child:
        return child
    code = BROKEN
    try:
        world.consume("one")
        code = CONSUMED
    except TidemarkError:  # the others were in the midst of it
        code = REFUSED
    finally:
        os._exit(code)


def at_once(acts: Sequence[Callable[[], object]]) -> list[object]:
    """What each act returned, or the error of ours that it raised; all begin together."""
    ready = threading.Barrier(len(acts))

    def go(act: Callable[[], object]) -> object:
        ready.wait()
        try:
            return act()
        except TidemarkError as error:
            return error

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(go, acts))
