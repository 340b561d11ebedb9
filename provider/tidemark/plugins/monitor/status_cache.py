"""Answers of logs for a page that waits: by threads, in a bounded time, one question an object at a time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any

from tidemark.errors import TidemarkError
from tidemark.model.streams import Stream
from tidemark.streams.worker.questions import LogQuestion, stream_question
from tidemark.streams.worker.sources import Tables
from tidemark.streams.worker.status import StreamStatus
from tidemark.streams.worker.threads import OwnThreads

__all__ = ["CachedStatus", "NotYet", "StatusCache", "Unreadable"]

_Key = tuple[Hashable, ...]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class NotYet:
    """The lake has not answered for `seconds`; the answer is taken when it comes."""

    seconds: float


@dataclass(frozen=True)
class Unreadable:
    """The source could not be read; why, in words."""

    words: str


CachedStatus = StreamStatus | Unreadable | NotYet


@dataclass
class _Entry:
    at: float
    answer: Future[Any]
    answered_at: float | None = None


class StatusCache:
    """Answers of logs, each asked once at a time and kept for `keep` seconds.

    However slow or dead a lake is, `answers` returns after `patience` seconds; the rest are NotYet by then. At most
    `threads` threads wait for the rest in the background. At most `each` of them wait for one table, a view's tables
    included. Questions that no thread has taken up are withdrawn.
    """

    def __init__(
        self,
        *,
        threads: int = 16,
        each: int = 2,
        keep: float = 5.0,
        most: int = 20_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._threads = OwnThreads("tidemark-monitor-lake", most=threads, each=each)
        self._keep = keep
        self._most = most
        self._clock = clock
        self._lock = Lock()
        self._entries: dict[_Key, _Entry] = {}

    async def statuses(self, streams: Iterable[Stream], tables: Tables, *, patience: float) -> dict[str, CachedStatus]:
        """The status of each stream by its uid, as `answers`."""
        return await self.answers(map(stream_question, streams), tables, patience=patience)

    async def answers(self, questions: Iterable[LogQuestion], tables: Tables, *, patience: float) -> dict[str, Any]:
        """The answer to each question by its uid, or Unreadable or NotYet. It takes at most `patience` seconds, and no
        thread waits for it.
        """
        entries = {one.uid: ((one.uid, *one.holds_for), self._entry_of(one, tables)) for one in questions}
        await _answered([entry.answer for _, entry in entries.values()], patience)
        return {uid: self._status_of(key, entry) for uid, (key, entry) in entries.items()}

    def _entry_of(self, question: LogQuestion, tables: Tables) -> _Entry:
        key = (question.uid, *question.holds_for)
        with self._lock:
            known = self._entries.get(key)
            if known is not None and not self._outdated(known):
                return known
            if len(self._entries) >= self._most:
                self._forget()
            entry = _Entry(self._clock(), self._threads.submit(partial(question.ask, tables), about=question.about))
            self._entries[key] = entry
        entry.answer.add_done_callback(lambda _: self._note(entry))
        return entry

    def _note(self, entry: _Entry) -> None:
        entry.answered_at = self._clock()

    def _outdated(self, entry: _Entry) -> bool:
        """Withdrawn, or answered too long ago; an answer that came late is still taken once."""
        if entry.answer.cancelled():
            return True
        return entry.answered_at is not None and self._clock() - entry.answered_at > self._keep

    def _forget(self) -> None:
        for key in [key for key, entry in self._entries.items() if self._outdated(entry)]:
            del self._entries[key]

    def _status_of(self, key: _Key, entry: _Entry) -> Any:
        if entry.answer.cancel():  # withdrawn, by now or before, if by another page that waited for the same
            with self._lock:
                if self._entries.get(key) is entry:
                    del self._entries[key]
            return NotYet(self._clock() - entry.at)
        if not entry.answer.done():
            return NotYet(self._clock() - entry.at)
        error = entry.answer.exception()
        if error is None:
            return entry.answer.result()
        if not isinstance(error, TidemarkError | OSError):
            log.error("Reading the log of a source failed unexpectedly", exc_info=error)
            return Unreadable(f"Its log could not be read: {type(error).__name__}.")
        return Unreadable(str(error) or type(error).__name__)


async def _answered(answers: Iterable[Future[Any]], patience: float) -> None:
    """Returns when all have arrived, or after `patience` seconds."""
    waiting = [asyncio.wrap_future(answer) for answer in answers]
    if waiting:
        there, late = await asyncio.wait(waiting, timeout=patience)
        for one in late:
            one.cancel()  # nobody waits for it any more; what a thread has taken up goes on
        for one in there:
            _ = one.cancelled() or one.exception()  # `_status_of` reports it; asyncio need not
        await asyncio.sleep(0)
