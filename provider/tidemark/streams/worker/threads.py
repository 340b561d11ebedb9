"""Threads for what may hang, a lake or a control store: few, fewer for one thing, and no process waits for them."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from threading import Lock, Thread
from typing import Any, TypeVar

from tidemark.model.streams import Stream

__all__ = ["PATIENCE", "READS_OF_ONE_TABLE", "OwnThreads", "for_each", "for_each_stream"]

PATIENCE = timedelta(seconds=30)  # of somebody who waits for a list
READS_OF_ONE_TABLE = 2  # at once; the others wait for their turn, whatever threads are idle
_LOGS_AT_ONCE = 8

T = TypeVar("T")
Thing = TypeVar("Thing")


@dataclass(frozen=True, eq=False)
class _Work:
    about: tuple[str, ...]
    act: Callable[[], Any]
    answer: Future[Any]


class OwnThreads:
    """At most `most` threads at a time, and at most `each` at work about the same thing; the rest waits. Work that is
    about several things counts for each of them.

    They exist while there is work. They are daemons, as Python's own pools are waited for when the process ends. A
    thread that a lake keeps waiting would keep the API server, or a command, from ending.
    """

    def __init__(self, name: str, *, most: int, each: int | None = None) -> None:
        self._name = name
        self._most = most
        self._each = each or most
        self._lock = Lock()
        self._queue: OrderedDict[_Work, None] = OrderedDict()  # may begin when a thread is free; counted in `_busy`
        self._waiting: defaultdict[str, OrderedDict[_Work, None]] = defaultdict(OrderedDict)  # by a thing that is busy
        self._busy: Counter[str] = Counter()
        self._working = 0
        self._closed = False

    def submit(self, act: Callable[[], T], *, about: Collection[str] = ()) -> Future[T]:
        """Have `act` done. Work that has not begun can be cancelled; after `close` it is cancelled at once."""
        work = _Work(tuple(dict.fromkeys(about)), act, Future())
        with self._lock:
            closed = self._closed
            if not closed:
                self._admit(work)
            ready = self._ready()
        if closed:
            work.answer.cancel()
        work.answer.add_done_callback(partial(self._forget, work))
        self._start(ready)
        return work.answer

    def close(self) -> None:
        """Cancels the work that has not begun; work in a thread continues. A second run finds nothing."""
        with self._lock:
            self._closed = True
            left = [*self._queue, *(work for waiting in self._waiting.values() for work in waiting)]
        for work in left:
            work.answer.cancel()

    def _start(self, works: Collection[_Work]) -> None:
        for work in works:
            Thread(target=self._work, args=(work,), name=self._name, daemon=True).start()

    def _work(self, work: _Work) -> None:
        while True:
            _do(work)
            with self._lock:
                self._working -= 1
                self._release(work)
                ready = self._ready()
            self._start(ready[1:])
            if not ready:
                return
            work = ready[0]

    def _admit(self, work: _Work) -> None:
        busy = next((thing for thing in work.about if self._busy[thing] >= self._each), None)
        if busy is None:
            self._busy.update(work.about)
            self._queue[work] = None
        else:
            self._waiting[busy][work] = None

    def _release(self, work: _Work) -> None:
        """Admit the work that waits for a thing of this work, while there is room now."""
        for thing in work.about:
            self._busy[thing] -= 1
            if not self._busy[thing]:
                del self._busy[thing]
        for thing in work.about:
            while thing in self._waiting and self._busy[thing] < self._each:
                waiting = self._waiting[thing]
                self._admit(waiting.popitem(last=False)[0])
                if not waiting:
                    del self._waiting[thing]

    def _ready(self) -> list[_Work]:
        """All that may begin, counted as begun; one that ends may make room for several."""
        ready = []
        while self._queue and self._working < self._most and not self._closed:
            work, _ = self._queue.popitem(last=False)
            if work.answer.set_running_or_notify_cancel():
                self._working += 1
                ready.append(work)
            else:
                self._release(work)
        return ready

    def _forget(self, work: _Work, answer: Future[Any]) -> None:
        """Of cancelled work nothing stays, however long what is before it hangs."""
        if not answer.cancelled():
            return
        with self._lock:
            if work in self._queue:
                del self._queue[work]
                self._release(work)
            for thing in work.about:
                if work in self._waiting.get(thing, ()):
                    del self._waiting[thing][work]
                    if not self._waiting[thing]:
                        del self._waiting[thing]
            ready = self._ready()
        self._start(ready)


def _do(work: _Work) -> None:
    try:
        result = work.act()
    except BaseException as error:  # noqa: BLE001 - it is whoever waits for the answer that must know
        work.answer.set_exception(error)
    else:
        work.answer.set_result(result)


def for_each_stream(
    streams: Sequence[Stream],
    ask: Callable[[Stream], T],
    *,
    failed: Callable[[Stream, BaseException], T],
    patience: timedelta | None = PATIENCE,
) -> list[T | None]:
    """The answer of `ask` for each of the streams, None if it has not answered within `patience` (None: it is waited
    for). A table that hangs keeps few threads, and no other stream from being read. If `ask` raises any error,
    `failed` has the answer for that stream, and the others have theirs.
    """
    about = [{base.table.path for base in stream.bases} for stream in streams]
    return for_each(streams, ask, about=about, failed=failed, patience=patience)


def for_each(
    things: Sequence[Thing],
    ask: Callable[[Thing], T],
    *,
    about: Sequence[Collection[str]],
    failed: Callable[[Thing, BaseException], T],
    patience: timedelta | None = PATIENCE,
) -> list[T | None]:
    """As `for_each_stream`, of anything. `about`: for each thing the paths of the tables that are read."""
    threads = OwnThreads("tidemark-stream-log", most=_LOGS_AT_ONCE, each=READS_OF_ONE_TABLE)
    answers = [threads.submit(partial(ask, thing), about=paths) for thing, paths in zip(things, about, strict=True)]
    wait(answers, timeout=None if patience is None else patience.total_seconds())
    return [_answer_of(thing, answer, failed) for thing, answer in zip(things, answers, strict=True)]


def _answer_of(thing: Thing, answer: Future[T], failed: Callable[[Thing, BaseException], T]) -> T | None:
    if answer.cancel() or not answer.done():
        return None
    error = answer.exception()
    return answer.result() if error is None else failed(thing, error)
