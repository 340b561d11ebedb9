"""The queries of all triggers of a triggerer on one connection: few threads, and one store query for many streams."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from airflow.sdk.exceptions import AirflowException

from tidemark.control.store import ControlStore
from tidemark.errors import ConnectionUnreadable, InvalidArgument, StreamNotFound, TableNotFound
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.materialized.worker.lags import ViewLag, view_lag
from tidemark.model.streams import Stream
from tidemark.streams.store import overview
from tidemark.streams.store import streams as stored_streams
from tidemark.streams.worker.following import followed
from tidemark.streams.worker.has_data import renew_anchor
from tidemark.streams.worker.observation import Observation, ObservationCache
from tidemark.streams.worker.risks import LOGS_AT_ONCE, Limit, RiskReport, risk_report
from tidemark.streams.worker.threads import READS_OF_ONE_TABLE, OwnThreads
from tidemark.triggers._pending import PendingPoller

if TYPE_CHECKING:
    from tidemark.hooks.settings import TidemarkSettings

__all__ = ["LOG_THREADS", "SourcePoller", "shared_poller"]

LOG_THREADS = 8  # for each connection: what is slow is the lake, and more would only fight for the interpreter
_REPORTS = 4  # at once; each waits for its logs
_SETTINGS_KEPT = 60.0  # seconds after which a changed connection is noticed
_PATIENCE = timedelta(seconds=5)  # triggers try again by themselves, and say so

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Opened:
    """The connection as it was read, and its store, which keeps its connections."""

    at: float
    hook: TidemarkHook
    settings: TidemarkSettings
    store: ControlStore


class SourcePoller:
    """Asks store and logs of one connection in at most LOG_THREADS + 1 threads for any number of watched streams. Risk
    reports on all of them take as many more.

    Streams that are asked for while the store is being read share the next read. A stream that is asked for during an
    observation of it gets that answer. So a stream whose lake hangs holds one thread, and all streams on one table hold
    two at most. Errors come out of the future: those of the connection, the store, and the stream's source.
    """

    def __init__(self, conn_id: str) -> None:
        self._conn_id = conn_id
        self._lock = Lock()
        self._under_way: dict[str, Future[Observation]] = {}  # by folded name
        self._unread: list[str] = []  # names whose streams are not read yet
        self._observations = ObservationCache()
        self._opening = Lock()
        self._opened: _Opened | None = None
        self._of_store = OwnThreads("tidemark-trigger-store", most=1)
        self._of_logs = OwnThreads("tidemark-trigger-log", most=LOG_THREADS, each=READS_OF_ONE_TABLE)
        self._of_reports = OwnThreads("tidemark-trigger-risk-report", most=_REPORTS)
        self._of_all_logs = OwnThreads("tidemark-trigger-risk-log", most=LOGS_AT_ONCE, each=READS_OF_ONE_TABLE)
        self._closed = False
        self.pipes = PendingPoller(self._store_and_settings, self._of_store)
        self.users = 0

    def observe(self, stream: str) -> Future[Observation]:
        """An observation of the stream of that name; shared, so it must not be cancelled."""
        folded = stream.casefold()
        with self._lock:
            under_way = self._under_way.get(folded)
            if under_way is not None:
                return under_way
            answer: Future[Observation] = Future()
            self._under_way[folded] = answer
            self._unread.append(stream)
            first = len(self._unread) == 1
        if first:
            self._read_streams()
        return answer

    def risk_report(self, names: Sequence[str] | None, limit: Limit) -> Future[RiskReport]:
        """Which of the streams (None: all) are at risk; reads their logs in eight threads of its own."""

        def look() -> RiskReport:
            opened = self._open()
            return risk_report(opened.store, names, opened.hook.open_table, limit, threads=self._of_all_logs)

        return self._of_reports.submit(look)

    def held_until(self, uid: str) -> Future[datetime | None]:
        """When the lease of the transaction that holds the stream runs out; None where none does."""

        def look() -> datetime | None:
            held = self._open().store.read(lambda connection: overview.find_row(connection, uid)).held
            return None if held is None else held.lease_until

        return self._of_store.submit(look)

    def view_lag(self, view: str) -> Future[ViewLag]:
        """The lag of a materialized view or a dynamic table, from the store."""
        return self._of_store.submit(lambda: view_lag(self._open().store, view))

    def close(self) -> None:
        """Withdraws what has not begun; an observation that a lake keeps waiting is left to end by itself."""
        with self._lock:
            self._closed = True
        for threads in (self._of_reports, self._of_all_logs, self._of_store, self._of_logs, self.pipes):
            threads.close()
        if self._opened is not None:
            self._opened.store.close()

    def _open(self) -> _Opened:
        """The connection, read again after a minute; if it cannot be read then, as it was. Raises
        AirflowNotFoundException, ConnectionUnreadable and InvalidArgument at the first read, and StoreUrlInvalid.
        """
        with self._opening:
            last = self._opened
            if last is not None and time.monotonic() - last.at < _SETTINGS_KEPT:
                return last
            hook = TidemarkHook(self._conn_id)
            try:
                settings = hook.settings
            except (AirflowException, ConnectionUnreadable, InvalidArgument) as error:
                if last is None:
                    raise
                log.warning("Connection %s cannot be read again, and is used as before: %s", self._conn_id, error)
                self._opened = replace(last, at=time.monotonic())
                return self._opened
            if last is not None and last.settings.control_store == settings.control_store:
                store = last.store
            else:
                store = ControlStore(settings.control_store, patience=_PATIENCE, keep_connections=True)
                if last is not None:
                    last.store.close()
            self._opened = _Opened(time.monotonic(), hook, settings, store)
            return self._opened

    def _store_and_settings(self) -> tuple[ControlStore, TidemarkSettings]:
        opened = self._open()
        return opened.store, opened.settings

    def _read_streams(self) -> None:
        names: list[str] = []

        def read() -> tuple[_Opened, dict[str, Stream]]:
            with self._lock:
                names.extend(self._unread)
                self._unread.clear()
            opened = self._open()
            return opened, opened.store.read(lambda connection: stored_streams.lookup_all(connection, names))

        def look(done: Future[tuple[_Opened, dict[str, Stream]]]) -> None:
            for name in names:
                self._when_done(done, name, partial(self._observe_named, name))

        self._of_store.submit(read).add_done_callback(look)

    def _observe_named(self, name: str, read: tuple[_Opened, dict[str, Stream]]) -> None:
        opened, found = read
        stream = found.get(name.casefold())
        if stream is None:
            self._answer(name).set_exception(StreamNotFound(stream=name))
            return
        with self._lock:
            if self._closed:
                return  # nobody waits any more
            tables = [base.table.path for base in stream.bases]
            observation = self._of_logs.submit(partial(self._observe, stream, opened), about=tables)
        observation.add_done_callback(
            lambda done: self._when_done(done, name, lambda observation: self._answer(name).set_result(observation))
        )

    def _observe(self, stream: Stream, opened: _Opened) -> Observation:
        """A stream without data does not age while somebody watches it (R86), and follows a table that is moved."""
        try:
            observation = self._observations.observe(stream, opened.settings.storage_options)
        except TableNotFound:
            stream = followed(opened.store, stream.name, opened.hook.open_table)
            observation = self._observations.observe(stream, opened.settings.storage_options)
        if not observation.has_data:
            renew_anchor(opened.store, stream, opened.hook.open_table)
        return observation

    def _when_done(self, done: Future[T], name: str, go_on: Callable[[T], None]) -> None:
        """Continues with the result, or passes on the error that stopped it."""
        if done.cancelled():
            self._answer(name).cancel()
        elif (error := done.exception()) is not None:
            self._answer(name).set_exception(error)
        else:
            go_on(done.result())

    def _answer(self, name: str) -> Future[Observation]:
        """The future to be answered; a request from now on starts another observation."""
        with self._lock:
            return self._under_way.pop(name.casefold())


_open: dict[str, SourcePoller] = {}
_one_at_a_time = Lock()


@contextmanager
def shared_poller(conn_id: str) -> Iterator[SourcePoller]:
    """The process's poller of that connection, shared by its triggers; closed when the last of them has left."""
    with _one_at_a_time:
        poller = _open.get(conn_id)
        if poller is None:
            poller = _open[conn_id] = SourcePoller(conn_id)
        poller.users += 1
    try:
        yield poller
    finally:
        with _one_at_a_time:
            poller.users -= 1
            left = poller.users == 0
            if left:
                del _open[conn_id]
        if left:
            poller.close()
