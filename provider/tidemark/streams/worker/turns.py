"""Reads of many tables in few threads: a table whose storage hangs keeps some of them, and never all."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["READS_OF_ONE_TABLE", "Turns"]

READS_OF_ONE_TABLE = 2  # at once; the others wait for their turn, whatever threads are idle

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class _Request(Generic[T]):
    tables: tuple[str, ...]
    read: Callable[[], T]
    answer: Future[T]


class Turns(Generic[T]):
    """Hands reads to the threads of `pool`, at most READS_OF_ONE_TABLE of those that read one table at a time."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._lock = Lock()
        self._busy: Counter[str] = Counter()
        self._waiting: defaultdict[str, deque[_Request[T]]] = defaultdict(deque)  # by a table that is busy
        self._closed = False

    def submit(self, tables: Iterable[str], read: Callable[[], T]) -> Future[T]:
        """The answer of `read`, which reads `tables`; cancelled if `close` comes before it begins. Whoever cancels it
        before that spares the read.
        """
        request = _Request(tuple(dict.fromkeys(tables)), read, Future())
        self._begin(request)
        return request.answer

    def close(self) -> None:
        """Withdraws the reads that wait for their turn; the pool's are the pool's. A second run finds none."""
        with self._lock:
            self._closed = True
            left = [request for queue in self._waiting.values() for request in queue]
            self._waiting.clear()
        for request in left:
            request.answer.cancel()

    def _begin(self, request: _Request[T]) -> None:
        with self._lock:
            if self._closed:
                request.answer.cancel()
            if request.answer.cancelled():
                return
            busy = next((table for table in request.tables if self._busy[table] >= READS_OF_ONE_TABLE), None)
            if busy is not None:
                self._queue(busy).append(request)
                return
            self._busy.update(request.tables)
            running = self._pool.submit(request.read)
        running.add_done_callback(partial(self._ended, request))

    def _queue(self, table: str) -> deque[_Request[T]]:
        """Who waits for the table, without those at its head that have given up."""
        queue = self._waiting[table]
        while queue and queue[0].answer.cancelled():
            queue.popleft()
        return queue

    def _ended(self, request: _Request[T], done: Future[T]) -> None:
        """Hands on what came of it, and asks those again that wait for one of its tables."""
        with self._lock:
            self._busy.subtract(request.tables)
            self._busy += Counter()  # without those that are zero
            again = [waiting for table in request.tables for waiting in self._waiting.pop(table, ())]
        _hand_on(done, request.answer)
        for waiting in again:
            self._begin(waiting)


def _hand_on(done: Future[T], answer: Future[T]) -> None:
    if done.cancelled():
        answer.cancel()
    elif not answer.set_running_or_notify_cancel():
        return
    elif (error := done.exception()) is not None:
        answer.set_exception(error)
    else:
        answer.set_result(done.result())
