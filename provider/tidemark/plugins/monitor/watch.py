"""Looks at logs and lags in the background, for a page that waits for neither."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from threading import Lock

from tidemark.control.object_needs import Key
from tidemark.control.store import ControlStore
from tidemark.streams.worker.background import log_failure
from tidemark.streams.worker.object_needs import NOTHING_KNOWN, Known, live_keys, look_at, without_ended
from tidemark.streams.worker.sources import Tables
from tidemark.streams.worker.threads import OwnThreads

__all__ = ["Watch"]


class Watch:
    """The findings of the last rounds of looks, and the next round, which begins when somebody asks.

    A round looks at `most` objects at once. Those in trouble are first, then those that were asked longest ago. At
    most one round runs, and the next one begins `every` seconds after it. Nobody looks while nobody asks. A round that
    fails leaves what was known, and the next one begins with other objects.

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
        answer.add_done_callback(partial(log_failure, words="Logs were not looked at for the overview"))

    def _round(self, store: ControlStore, tables: Tables) -> None:
        try:
            self._look(store, tables)
        finally:
            with self._lock:
                self._running, self._ended = False, self._clock()

    def _look(self, store: ControlStore, tables: Tables) -> None:
        living = store.read(live_keys)
        known = without_ended(self._known, living)
        troubled = sorted(known.late)[: self._most // 2]
        others = sorted(living.difference(troubled), key=lambda key: (self._asked.get(key, float("-inf")), key))
        chosen = [*troubled, *others[: self._most - len(troubled)]]
        asked = {key: at for key, at in self._asked.items() if key in living}
        self._asked = asked | dict.fromkeys(chosen, self._clock())  # before the look, which may fail by one of them
        self._known = look_at(store, tables, known, chosen, rest=self._rest)
