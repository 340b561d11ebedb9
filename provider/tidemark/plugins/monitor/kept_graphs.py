"""The graph of each connection, kept for a while: many readers of one page read it once, and few wait for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from threading import Lock

from tidemark.control.lineage_graph import Graph
from tidemark.control.object_lineage import read_graph
from tidemark.control.store import ControlStore
from tidemark.streams.worker.background import log_failure
from tidemark.streams.worker.threads import OwnThreads

__all__ = ["KeptGraphs"]


@dataclass(frozen=True)
class _Kept:
    store: ControlStore
    graph: Graph
    at: float


@dataclass
class _Place:
    """Of one connection. `lock`: one reader at a time reads, and the others wait. `reading`: so does the background."""

    lock: Lock = field(default_factory=Lock)
    kept: _Kept | None = None
    reading: bool = False


class KeptGraphs:
    """The ties between objects change rarely, and their states are not among them. So a graph is used for `fresh`
    seconds. Until `usable` seconds it is still used, and read again in the background. An older one is read by the
    reader who asks.
    """

    def __init__(
        self,
        *,
        fresh: float = 10.0,
        usable: float = 60.0,
        oldest: float = 600.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fresh, self._usable, self._oldest, self._clock = fresh, usable, oldest, clock
        self._threads = OwnThreads("tidemark-monitor-lineage", most=1)
        self._lock = Lock()
        self._places: dict[str, _Place] = {}

    def of(self, conn_id: str, store: ControlStore) -> Graph:
        """The graph of the connection's store. Raises StoreError."""
        with self._lock:
            place = self._places.setdefault(conn_id, _Place())
        kept = self._usable_one(place, store)
        if kept is None:
            with place.lock:
                kept = self._usable_one(place, store) or self._read(place, store)
        elif self._clock() - kept.at >= self._fresh:
            self._read_again(place, store)
        return kept.graph

    def at_hand(self, conn_id: str, store: ControlStore) -> Graph | None:
        """The graph that was read last, for readers who do not wait for one: at most `oldest` seconds old. After
        `usable` seconds, and before the first, it is read in the background.
        """
        with self._lock:
            place = self._places.setdefault(conn_id, _Place())
        if self._usable_one(place, store) is None:
            self._read_again(place, store)
        kept = self._younger(place, store, self._oldest)
        return None if kept is None else kept.graph

    def _usable_one(self, place: _Place, store: ControlStore) -> _Kept | None:
        return self._younger(place, store, self._usable)

    def _younger(self, place: _Place, store: ControlStore, seconds: float) -> _Kept | None:
        kept = place.kept
        if kept is None or kept.store is not store or self._clock() - kept.at >= seconds:
            return None
        return kept

    def _read(self, place: _Place, store: ControlStore) -> _Kept:
        begun = self._clock()
        place.kept = kept = _Kept(store, store.read(read_graph), begun)
        return kept

    def _read_again(self, place: _Place, store: ControlStore) -> None:
        with self._lock:
            if place.reading:
                return
            place.reading = True
        answer = self._threads.submit(lambda: self._in_background(place, store))
        answer.add_done_callback(partial(log_failure, words="The lineage was not read again"))

    def _in_background(self, place: _Place, store: ControlStore) -> None:
        try:
            self._read(place, store)
        finally:
            with self._lock:
                place.reading = False
