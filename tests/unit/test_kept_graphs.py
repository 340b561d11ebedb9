"""The kept graph: read once for many, read again behind those who read, and read at once if it is too old."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tidemark.control.lineage_graph import Graph
from tidemark.control.store import ControlStore
from tidemark.errors import StoreError
from tidemark.plugins.monitor.kept_graphs import KeptGraphs


class CountedStore(ControlStore):
    """It counts its reads, and fails on demand."""

    reads = 0
    fails = False

    def read(self, work: Callable[..., Graph]) -> Graph:  # type: ignore[override]
        self.reads += 1
        if self.fails:
            raise StoreError(message="it is away")
        return super().read(work)


@pytest.fixture
def store(tmp_path: Path) -> CountedStore:
    made = CountedStore(f"sqlite:///{tmp_path}/control.db")
    made.migrate()
    made.reads = 0
    return made


def until(seen: Callable[[], bool]) -> None:
    ends = time.monotonic() + 20
    while not seen():
        assert time.monotonic() < ends
        time.sleep(0.01)


class Seconds:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_many_readers_read_it_once(store: CountedStore) -> None:
    graphs = KeptGraphs(clock=Seconds())
    threads = [threading.Thread(target=graphs.of, args=("a", store)) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert store.reads == 1
    graphs.of("b", store)
    assert store.reads == 2


def test_an_old_one_is_used_while_it_is_read_again(store: CountedStore) -> None:
    seconds = Seconds()
    graphs = KeptGraphs(clock=seconds)
    first = graphs.of("a", store)
    seconds.now = 9
    assert graphs.of("a", store) is first
    assert store.reads == 1
    seconds.now = 11
    assert graphs.of("a", store) is first
    until(lambda: graphs.of("a", store) is not first)
    assert store.reads == 2


def test_one_that_is_too_old_is_read_by_who_asks(store: CountedStore) -> None:
    seconds = Seconds()
    graphs = KeptGraphs(clock=seconds)
    first = graphs.of("a", store)
    seconds.now = 61
    assert graphs.of("a", store) is not first


def test_a_store_that_is_away_leaves_it_until_it_is_too_old(store: CountedStore) -> None:
    seconds = Seconds()
    graphs = KeptGraphs(clock=seconds)
    first = graphs.of("a", store)
    store.fails, seconds.now = True, 11
    assert graphs.of("a", store) is first
    until(lambda: store.reads == 2)
    assert graphs.of("a", store) is first
    seconds.now = 61
    with pytest.raises(StoreError):
        graphs.of("a", store)


def test_another_store_is_another_graph(store: CountedStore, tmp_path: Path) -> None:
    graphs = KeptGraphs(clock=Seconds())
    other = CountedStore(f"sqlite:///{tmp_path}/other.db")
    other.migrate()
    assert graphs.of("a", store) is not graphs.of("a", other)


def test_who_does_not_wait_gets_the_last_one_for_ten_minutes(store: CountedStore) -> None:
    seconds = Seconds()
    graphs = KeptGraphs(clock=seconds)
    assert graphs.at_hand("a", store) is None
    until(lambda: graphs.at_hand("a", store) is not None)
    first = graphs.at_hand("a", store)
    seconds.now = 59
    assert (graphs.at_hand("a", store), store.reads) == (first, 1)
    seconds.now = 60
    assert graphs.at_hand("a", store) is first
    until(lambda: store.reads == 2 and graphs.at_hand("a", store) is not first)
    store.fails = True
    seconds.now = 659
    assert graphs.at_hand("a", store) is not None
    until(lambda: store.reads == 3)
    seconds.now = 660
    assert graphs.at_hand("a", store) is None


def test_a_graph_of_another_store_is_not_at_hand(store: CountedStore, tmp_path: Path) -> None:
    graphs = KeptGraphs(clock=Seconds())
    graphs.of("a", store)
    other = ControlStore(f"sqlite:///{tmp_path}/other.db")
    other.migrate()
    assert graphs.at_hand("a", other) is None
    until(lambda: graphs.at_hand("a", other) is not None)
