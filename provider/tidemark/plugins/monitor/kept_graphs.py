"""The graph of each connection, kept for some seconds: many readers of one page read it once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from tidemark.control.lineage_graph import Graph
from tidemark.control.object_lineage import read_graph
from tidemark.control.store import ControlStore

__all__ = ["KeptGraphs"]


@dataclass(frozen=True)
class _Kept:
    store: ControlStore
    graph: Graph
    at: float


class KeptGraphs:
    """The ties between objects change rarely, and their states are not among them. So a graph is kept for `keep`
    seconds. One reader at a time reads that of a connection, and the others wait for it.
    """

    def __init__(self, *, keep: float = 10.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._keep, self._clock = keep, clock
        self._lock = Lock()
        self._locks: dict[str, Lock] = {}
        self._kept: dict[str, _Kept] = {}

    def of(self, conn_id: str, store: ControlStore) -> Graph:
        """The graph of the connection's store."""
        with self._lock:
            mine = self._locks.setdefault(conn_id, Lock())
        with mine:
            kept = self._kept.get(conn_id)
            if kept is None or kept.store is not store or self._clock() - kept.at >= self._keep:
                kept = self._kept[conn_id] = _Kept(store, store.read(read_graph), self._clock())
            return kept.graph
