"""The way from the page to one connection's store and lake: a store that hangs keeps nobody but its own readers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar

from fastapi import HTTPException
from sqlalchemy.exc import DataError, DBAPIError, SQLAlchemyError, StatementError

from tidemark.control.store import ControlStore
from tidemark.errors import StoreError, StoreNotMigrated, StoreTooNew, TidemarkError
from tidemark.plugins.monitor.connections import STORE_THREADS, MonitoredConnection, open_connection
from tidemark.plugins.monitor.status_cache import StatusCache
from tidemark.plugins.monitor.watch import Watch
from tidemark.streams.worker.threads import OwnThreads

__all__ = ["Gate", "Gates"]

T = TypeVar("T")

log = logging.getLogger(__name__)

_FULL = "Too many readers wait for the control store of this connection. Try again in a moment."
_NO_ANSWER = "The control store does not answer. The API server's log has its error."


class Gate:
    """Work on one connection, in threads of its own; nothing of Airflow's waits for it.

    At most `most` readers are let in at once, each for `patience` seconds. After the store has failed or has not
    answered, the gate is shut for `pause` seconds. Then one reader tries, and opens it for all. A reader who is not let
    in gets 503 at once, with a time after which to come again.
    """

    def __init__(
        self,
        conn_id: str,
        *,
        open_at: Callable[[str], MonitoredConnection] = open_connection,
        most: int = 32,
        patience: float = 8.0,
        pause: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.status_cache = StatusCache(clock=clock)
        self.watch = Watch(clock=clock)
        self._conn_id = conn_id
        self._open_at = open_at
        self._threads = OwnThreads(f"tidemark-monitor-{conn_id}", most=STORE_THREADS)
        self._most, self._patience, self._pause = most, patience, pause
        self._clock = clock
        self._lock = Lock()
        self._inside = 0
        self._shut_until: float | None = None  # None: the last answer was one
        self._trying = False
        self._store: ControlStore | None = None

    async def ask(self, work: Callable[[MonitoredConnection], T]) -> T:
        """The result of `work`. Raises HTTPException 503, and what opening the connection and `work` raise."""
        with self._let_in():
            answer = asyncio.wrap_future(self._threads.submit(lambda: self._do(work)))
            try:
                found = await asyncio.wait_for(answer, self._patience)
            except TimeoutError as error:
                log.error("The control store of %s has not answered for %s s", self._conn_id, self._patience)
                self._shut()
                if self._store is not None:
                    self._store.cut()
                raise self._refusal(_NO_ANSWER) from error
            except (TidemarkError, SQLAlchemyError, OSError, HTTPException) as error:
                if _is_an_answer(error):
                    self._shut_until = None
                elif not isinstance(error, HTTPException):  # which is the gate's own refusal
                    self._shut()
                raise
            self._shut_until = None
            return found

    def _do(self, work: Callable[[MonitoredConnection], T]) -> T:
        if self._is_shut():  # since this reader was let in
            raise self._refusal(_NO_ANSWER)
        monitored = self._open_at(self._conn_id)
        self._store = monitored.store
        return work(monitored)

    @contextmanager
    def _let_in(self) -> Iterator[None]:
        with self._lock:
            tries = self._shut_until is not None
            if self._is_shut() or (tries and self._trying):
                raise self._refusal(_NO_ANSWER)
            if self._inside >= self._most:
                raise self._refusal(_FULL)
            self._inside += 1
            self._trying = self._trying or tries
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                self._trying = self._trying and not tries

    def _is_shut(self) -> bool:
        return self._shut_until is not None and self._clock() < self._shut_until

    def _shut(self) -> None:
        self._shut_until = self._clock() + self._pause

    def _refusal(self, words: str) -> HTTPException:
        return HTTPException(503, words, headers={"Retry-After": str(max(1, round(self._pause)))})


def _is_an_answer(error: Exception) -> bool:
    """Of the store; another one means that it has failed, and will fail the next reader as well. A value that cannot be
    in a statement is that of one reader.
    """
    if isinstance(error, HTTPException):
        return error.status_code < 500
    if isinstance(error, DataError) or (isinstance(error, StatementError) and not isinstance(error, DBAPIError)):
        return True
    return isinstance(error, StoreNotMigrated | StoreTooNew) or not isinstance(
        error, StoreError | SQLAlchemyError | OSError
    )


class Gates:
    """A gate for each connection, made when it is first asked for; those that hang keep no other one."""

    def __init__(self) -> None:
        self._gates: dict[str, Gate] = {}
        self._lock = Lock()

    def to(self, conn_id: str) -> Gate:
        """The one gate of that connection."""
        with self._lock:
            if conn_id not in self._gates:
                self._gates[conn_id] = Gate(conn_id)
            return self._gates[conn_id]
