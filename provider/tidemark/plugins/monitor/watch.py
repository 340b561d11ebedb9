"""Looks at logs and lags in the background, for a page that waits for neither."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from threading import Lock

from tidemark.control.looks import turns_of
from tidemark.control.object_needs import Key
from tidemark.control.store import ControlStore
from tidemark.streams.worker.background import log_failure
from tidemark.streams.worker.look_turns import look_in_turn, next_turns
from tidemark.streams.worker.object_needs import NOTHING_KNOWN, Known, without_ended
from tidemark.streams.worker.open_looks import OpenLooks
from tidemark.streams.worker.sources import Tables
from tidemark.streams.worker.threads import OwnThreads

__all__ = ["Watch"]


class Watch:
    """The findings of the last rounds of looks, and the next round, which begins when somebody asks.

    A round looks at `most` objects. Every second one is in trouble, and the one that was asked longest ago is first.
    After a restart that is the one whose turn is longest ago by the control store. Objects for which a round had no
    time are the first of the next one. At most one round runs, and the next one begins `every` seconds after it. Nobody
    looks while nobody asks. A round that fails leaves what was known, and the next one begins with other objects.

    Reading logs is work for the processor, and requests of the same process wait for it. So the threads of a round rest
    after each log for `rest` seconds.
    """

    def __init__(
        self, *, every: float = 20.0, most: int = 500, rest: float = 0.1, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._every, self._most, self._rest, self._clock = every, most, rest, clock
        self._threads = OwnThreads("tidemark-monitor-watch", most=1)
        self._lock = Lock()
        self._running = False
        self._ended: float | None = None
        self._known = NOTHING_KNOWN
        self._asked: dict[Key, float] = {}
        self._open_looks = OpenLooks()

    @property
    def known(self) -> Known:
        """The findings of all rounds up to now."""
        return self._known

    def wake(self, store: ControlStore, tables: Tables) -> None:
        """Begin a round in the background, if one is due. Returns at once."""
        with self._lock:
            due = self._ended is None or self._clock() - self._ended >= self._every
            if self._running or not due:
                return
            self._running = True
        answer = self._threads.submit(lambda: self._round(store, tables))
        answer.add_done_callback(partial(log_failure, words="Logs were not read for the overview"))

    def _round(self, store: ControlStore, tables: Tables) -> None:
        try:
            self._look(store, tables)
        finally:
            with self._lock:
                self._running, self._ended = False, self._clock()

    def _look(self, store: ControlStore, tables: Tables) -> None:
        turns = store.read(turns_of)
        known = without_ended(self._known, turns)
        before = {key: at for key, at in self._asked.items() if key in turns}
        chosen = next_turns(turns, before, known.late, self._most)
        asked = before | dict.fromkeys(chosen, self._clock())
        self._asked = asked  # before the look, which may fail by one of them
        self._known = look_in_turn(store, tables, known, chosen, open_looks=self._open_looks, rest=self._rest)
        waiting = self._known.waiting
        self._asked = {key: at for key, at in asked.items() if key not in waiting} | {
            key: at for key, at in before.items() if key in waiting
        }
