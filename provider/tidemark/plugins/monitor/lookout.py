"""Asking the logs of sources while a page waits: in threads, for a bounded time, one question a stream at a time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from threading import Lock

from tidemark.errors import TidemarkError
from tidemark.model.streams import Stream
from tidemark.streams.worker.sources import Tables
from tidemark.streams.worker.status import StreamStatus, status_of
from tidemark.streams.worker.threads import OwnThreads

__all__ = ["Lookout", "NotYet", "Sight", "Unreadable"]

_Question = tuple[str, int, float]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class NotYet:
    """The lake has not answered for `seconds`; the answer is taken when it comes."""

    seconds: float


@dataclass(frozen=True)
class Unreadable:
    """The source could not be read; why, in words."""

    words: str


Sight = StreamStatus | Unreadable | NotYet


@dataclass
class _Asked:
    at: float
    answer: Future[StreamStatus]
    answered_at: float | None = None


class Lookout:
    """Statuses of streams, each asked once at a time and kept for `keep` seconds.

    However slow or dead a lake is, `look` returns after `patience` seconds: what is missing then is a NotYet, and is
    waited for in the background by at most `threads` threads, `each` of them for one table, a view's tables included.
    Questions that no thread has taken up are withdrawn.
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
        self._asked: dict[_Question, _Asked] = {}

    async def look(self, streams: Iterable[Stream], tables: Tables, *, patience: float) -> dict[str, Sight]:
        """The sight of each stream by its uid, at most `patience` seconds from now; no thread waits for it."""
        asked = {stream.uid: (_question(stream), self._ask(stream, tables)) for stream in streams}
        await _answered([one.answer for _, one in asked.values()], patience)
        return {uid: self._sight(about, one) for uid, (about, one) in asked.items()}

    def _ask(self, stream: Stream, tables: Tables) -> _Asked:
        about = _question(stream)
        with self._lock:
            known = self._asked.get(about)
            if known is not None and not self._outdated(known):
                return known
            if len(self._asked) >= self._most:
                self._forget()
            looking = partial(status_of, stream, tables)
            read = {base.table.path for base in stream.bases}
            asked = _Asked(self._clock(), self._threads.submit(looking, about=read))
            self._asked[about] = asked
        asked.answer.add_done_callback(lambda _: self._note(asked))
        return asked

    def _note(self, asked: _Asked) -> None:
        asked.answered_at = self._clock()

    def _outdated(self, asked: _Asked) -> bool:
        """Withdrawn, or answered too long ago; an answer that came late is still taken once."""
        if asked.answer.cancelled():
            return True
        return asked.answered_at is not None and self._clock() - asked.answered_at > self._keep

    def _forget(self) -> None:
        for about in [about for about, asked in self._asked.items() if self._outdated(asked)]:
            del self._asked[about]

    def _sight(self, about: _Question, asked: _Asked) -> Sight:
        if asked.answer.cancel():  # withdrawn, by now or before, if by another page that waited for the same
            with self._lock:
                if self._asked.get(about) is asked:
                    del self._asked[about]
            return NotYet(self._clock() - asked.at)
        if not asked.answer.done():
            return NotYet(self._clock() - asked.at)
        error = asked.answer.exception()
        if error is None:
            return asked.answer.result()
        if not isinstance(error, TidemarkError | OSError):
            log.error("Reading the log of a source failed unexpectedly", exc_info=error)
            return Unreadable(f"Its log could not be read: {type(error).__name__}.")
        return Unreadable(str(error) or type(error).__name__)


async def _answered(answers: Iterable[Future[StreamStatus]], patience: float) -> None:
    """Returns when all are there, or after `patience` seconds."""
    waiting = [asyncio.wrap_future(answer) for answer in answers]
    if waiting:
        there, late = await asyncio.wait(waiting, timeout=patience)
        for one in late:
            one.cancel()  # nobody waits for it any more; what a thread has taken up goes on
        for one in there:
            _ = one.cancelled() or one.exception()  # it is told by `_sight`; asyncio need not
        await asyncio.sleep(0)


def _question(stream: Stream) -> _Question:
    """What an answer belongs to: a stream at its place."""
    return stream.uid, stream.offset.version, stream.anchor.timestamp()
