"""Threads for what may hang, a lake or a control store: few, fewer for one thing, and no process waits for them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from threading import Lock, Thread
from typing import Any, TypeVar

from tidemark.model.streams import Stream
from tidemark.streams.worker.turns import READS_OF_ONE_TABLE

__all__ = ["PATIENCE", "OwnThreads", "for_each_stream"]

PATIENCE = timedelta(seconds=30)  # of somebody who waits for a list
_LOGS_AT_ONCE = 8

T = TypeVar("T")


@dataclass(frozen=True)
class _Work:
    about: frozenset[str]
    act: Callable[[], Any]
    answer: Future[Any]


class OwnThreads:
    """At most `most` threads at a time, of which at most `each` are at work about the same thing; the rest waits. Work
    that is about several things counts for each of them.

    They are there while there is work. They are daemons: Python's own pools are waited for when the process ends, and
    one that a lake keeps waiting would keep the API server, or a command, from ending.
    """

    def __init__(self, name: str, *, most: int, each: int | None = None) -> None:
        self._name = name
        self._most = most
        self._each = each or most
        self._lock = Lock()
        self._waiting: deque[_Work] = deque()
        self._working = 0
        self._at_work: Counter[str] = Counter()

    def submit(self, act: Callable[[], T], *, about: Collection[str] = ()) -> Future[T]:
        """Have `act` done. What has not begun can be cancelled."""
        work = _Work(frozenset(about), act, Future())
        with self._lock:
            self._waiting = deque(one for one in self._waiting if not one.answer.cancelled())
            self._waiting.append(work)
            ready = self._ready()
        self._start(ready)
        return work.answer

    def _start(self, works: Collection[_Work]) -> None:
        for work in works:
            Thread(target=self._work, args=(work,), name=self._name, daemon=True).start()

    def _work(self, work: _Work) -> None:
        while True:
            _do(work)
            with self._lock:
                self._working -= 1
                self._at_work -= Counter(work.about)  # what comes to 0 is forgotten
                ready = self._ready()
            self._start(ready[1:])
            if not ready:
                return
            work = ready[0]

    def _ready(self) -> list[_Work]:
        """All that may begin, counted as begun; one that ends may make room for several."""
        ready = []
        for work in tuple(self._waiting):
            if self._working >= self._most:
                break
            if all(self._at_work[thing] < self._each for thing in work.about):
                self._waiting.remove(work)
                if work.answer.set_running_or_notify_cancel():
                    self._working += 1
                    self._at_work.update(work.about)
                    ready.append(work)
        return ready


def _do(work: _Work) -> None:
    try:
        found = work.act()
    except BaseException as error:  # noqa: BLE001 - it is whoever waits for the answer that must know
        work.answer.set_exception(error)
    else:
        work.answer.set_result(found)


def for_each_stream(
    streams: Sequence[Stream], look: Callable[[Stream], T], *, patience: timedelta | None = PATIENCE
) -> list[T | None]:
    """What `look` finds for each of the streams, None where it has not answered within `patience` (None: it is waited
    for). A table that hangs keeps few threads, and no other stream from being looked at. Raises what a look raises.
    """
    threads = OwnThreads("tidemark-stream-log", most=_LOGS_AT_ONCE, each=READS_OF_ONE_TABLE)
    asked = [threads.submit(partial(look, one), about={base.table.path for base in one.bases}) for one in streams]
    wait(asked, timeout=None if patience is None else patience.total_seconds())
    return [None if one.cancel() or not one.done() else one.result() for one in asked]
