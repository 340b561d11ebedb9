"""What all triggers of a triggerer ask of one connection: in few threads, one store query for many streams."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from tidemark.control.store import ControlStore
from tidemark.errors import StreamNotFound, TableNotFound
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.model.streams import Stream
from tidemark.streams.store import overview
from tidemark.streams.store import streams as stored_streams
from tidemark.streams.worker.following import followed
from tidemark.streams.worker.has_data import renew_anchor
from tidemark.streams.worker.outlook import LOGS_AT_ONCE, Found, Limit, Outlook, outlook
from tidemark.streams.worker.turns import Turns
from tidemark.triggers._sight import Sight, Sights

if TYPE_CHECKING:
    from tidemark.hooks.settings import TidemarkSettings

__all__ = ["LOG_THREADS", "Looks", "looking"]

LOG_THREADS = 8  # for each connection: what is slow is the lake, and more would only fight for the interpreter
_OUTLOOKS = 4  # at once; each waits for its logs
_SETTINGS_KEPT = 60.0  # seconds after which a changed connection is noticed
_PATIENCE = timedelta(seconds=5)  # triggers try again by themselves, and say so

T = TypeVar("T")


@dataclass(frozen=True)
class _Opened:
    """The connection as it was read, and its store, which keeps its connections."""

    at: float
    hook: TidemarkHook
    settings: TidemarkSettings
    store: ControlStore


class Looks:
    """Asks store and logs of one connection in at most LOG_THREADS + 1 threads, however many streams are watched, and
    for outlooks on all of them in as many more.

    Streams that are asked for while the store is being read share the next read. A stream that is asked for while a
    look at it is under way gets that look's answer, so one whose lake hangs holds one thread and no more; all streams
    on one table hold two at most. Errors come out of the future: those of the connection, the store, and the stream's
    source.
    """

    def __init__(self, conn_id: str) -> None:
        self._conn_id = conn_id
        self._lock = Lock()
        self._asked: dict[str, Future[Sight]] = {}  # by folded name: looks under way
        self._unread: list[str] = []  # names whose streams are not read yet
        self._sights = Sights()
        self._opening = Lock()
        self._opened: _Opened | None = None
        self._of_store = ThreadPoolExecutor(1, thread_name_prefix="tidemark-trigger-store")
        self._of_logs = ThreadPoolExecutor(LOG_THREADS, thread_name_prefix="tidemark-trigger-log")
        self._turns: Turns[Sight] = Turns(self._of_logs)
        self._of_outlooks = ThreadPoolExecutor(_OUTLOOKS, thread_name_prefix="tidemark-trigger-outlook")
        self._of_all_logs = ThreadPoolExecutor(LOGS_AT_ONCE, thread_name_prefix="tidemark-trigger-outlook-log")
        self._outlook_turns: Turns[Found] = Turns(self._of_all_logs)
        self._closed = False
        self.users = 0

    def sight(self, stream: str) -> Future[Sight]:
        """What there is to see of the stream of that name now; shared, so it must not be cancelled."""
        folded = stream.casefold()
        with self._lock:
            under_way = self._asked.get(folded)
            if under_way is not None:
                return under_way
            answer: Future[Sight] = Future()
            self._asked[folded] = answer
            self._unread.append(stream)
            first = len(self._unread) == 1
        if first:
            self._read_streams()
        return answer

    def outlook(self, names: Sequence[str] | None, limit: Limit) -> Future[Outlook]:
        """Which of the streams (None: all) are at risk; reads their logs in eight threads of its own."""

        def look() -> Outlook:
            opened = self._open()
            return outlook(opened.store, names, opened.hook.open_table, limit, turns=self._outlook_turns)

        return self._of_outlooks.submit(look)

    def held_until(self, uid: str) -> Future[datetime | None]:
        """When the lease of the transaction that holds the stream runs out; None where none does."""

        def look() -> datetime | None:
            held = self._open().store.read(lambda connection: overview.one(connection, uid)).held
            return None if held is None else held.lease_until

        return self._of_store.submit(look)

    def close(self) -> None:
        """Withdraws what has not begun; a look that a lake keeps waiting is left to end by itself."""
        with self._lock:
            self._closed = True
        self._turns.close()
        self._outlook_turns.close()
        self._of_outlooks.shutdown(wait=False, cancel_futures=True)
        self._of_all_logs.shutdown(wait=False, cancel_futures=True)
        self._of_store.shutdown(wait=False, cancel_futures=True)
        self._of_logs.shutdown(wait=False, cancel_futures=True)
        if self._opened is not None:
            self._opened.store.close()

    def _open(self) -> _Opened:
        """Raises AirflowNotFoundException, InvalidArgument, StoreUrlInvalid."""
        with self._opening:
            last = self._opened
            if last is not None and time.monotonic() - last.at < _SETTINGS_KEPT:
                return last
            hook = TidemarkHook(self._conn_id)
            settings = hook.settings
            if last is not None and last.settings.control_store == settings.control_store:
                store = last.store
            else:
                store = ControlStore(settings.control_store, patience=_PATIENCE, keep_connections=True)
                if last is not None:
                    last.store.close()
            self._opened = _Opened(time.monotonic(), hook, settings, store)
            return self._opened

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
                self._when_done(done, name, partial(self._look_at, name))

        self._of_store.submit(read).add_done_callback(look)

    def _look_at(self, name: str, read: tuple[_Opened, dict[str, Stream]]) -> None:
        opened, found = read
        stream = found.get(name.casefold())
        if stream is None:
            self._answer(name).set_exception(StreamNotFound(stream=name))
            return
        with self._lock:
            if self._closed:
                return  # nobody waits any more
            tables = [base.table.path for base in stream.bases]
            looked = self._turns.submit(tables, partial(self._look, stream, opened))
        looked.add_done_callback(
            lambda done: self._when_done(done, name, lambda sight: self._answer(name).set_result(sight))
        )

    def _look(self, stream: Stream, opened: _Opened) -> Sight:
        """A stream without data does not age while somebody watches it (R86), and follows a table that is moved."""
        try:
            sight = self._sights.look(stream, opened.settings.storage_options)
        except TableNotFound:
            stream = followed(opened.store, stream.name, opened.hook.open_table)
            sight = self._sights.look(stream, opened.settings.storage_options)
        if not sight.has_data:
            renew_anchor(opened.store, stream, opened.hook.open_table)
        return sight

    def _when_done(self, done: Future[T], name: str, go_on: Callable[[T], None]) -> None:
        """Goes on with the result, or hands on what stopped it."""
        if done.cancelled():
            self._answer(name).cancel()
        elif (error := done.exception()) is not None:
            self._answer(name).set_exception(error)
        else:
            go_on(done.result())

    def _answer(self, name: str) -> Future[Sight]:
        """The future to be answered; whoever asks from now on starts another look."""
        with self._lock:
            return self._asked.pop(name.casefold())


_open: dict[str, Looks] = {}
_one_at_a_time = Lock()


@contextmanager
def looking(conn_id: str) -> Iterator[Looks]:
    """The process's looks of that connection, shared by its triggers; closed when the last of them has left."""
    with _one_at_a_time:
        looks = _open.get(conn_id)
        if looks is None:
            looks = _open[conn_id] = Looks(conn_id)
        looks.users += 1
    try:
        yield looks
    finally:
        with _one_at_a_time:
            looks.users -= 1
            left = looks.users == 0
            if left:
                del _open[conn_id]
        if left:
            looks.close()
