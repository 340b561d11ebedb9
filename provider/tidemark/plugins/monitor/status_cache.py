"""Answers of logs for a page that does not wait for them: looks in the background, one an object at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any

from tidemark.model.streams import Stream
from tidemark.streams.worker.background import why_unreadable
from tidemark.streams.worker.questions import LogQuestion, stream_question
from tidemark.streams.worker.sources import Tables
from tidemark.streams.worker.status import StreamStatus
from tidemark.streams.worker.threads import OwnThreads

__all__ = ["CachedStatus", "Looks", "NotYet", "StatusCache", "Unreadable"]

_Key = tuple[Hashable, ...]


@dataclass(frozen=True)
class NotYet:
    """The lake has not answered for `seconds`; the answer is taken when it comes. 0: the look has just begun."""

    seconds: float


@dataclass(frozen=True)
class Unreadable:
    """The source could not be read; why, in words."""

    words: str


CachedStatus = StreamStatus | Unreadable | NotYet


@dataclass(frozen=True)
class Looks:
    """The findings of looks at logs. `answers`: by the uid of each question, as its own type, Unreadable or NotYet.
    `ago`: seconds since the oldest look among them; None: none of them has ended.
    """

    answers: Mapping[str, Any]
    ago: float | None

    @property
    def missing(self) -> int:
        """How many logs have not answered yet."""
        return sum(isinstance(one, NotYet) for one in self.answers.values())


@dataclass(eq=False)
class _Entry:
    """A look. `wanted_at`: when somebody wanted its answer last. `before`: the look before, until this one ends."""

    at: float
    wanted_at: float
    answer: Future[Any]
    answered_at: float | None = None
    before: _Entry | None = None


_NOBODY_ASKS = object()  # the look came to its turn when nobody wanted it any more


class StatusCache:
    """Answers of logs, each asked once at a time, and again if it is wanted after `keep` seconds. Until then the old
    answer is used, for `usable` seconds at most.

    However slow or dead a lake is, nobody waits for it who does not want to. At most `threads` threads look in the
    background. At most `each` of them look at one table, a view's tables included. A look is left out if nobody has
    wanted it for `usable` seconds before its turn.
    """

    def __init__(
        self,
        *,
        threads: int = 16,
        each: int = 2,
        keep: float = 5.0,
        usable: float = 60.0,
        most: int = 20_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._threads = OwnThreads("tidemark-monitor-lake", most=threads, each=each)
        self._keep, self._usable = keep, usable
        self._most = most
        self._clock = clock
        self._lock = Lock()
        self._entries: dict[_Key, _Entry] = {}

    async def statuses(self, streams: Iterable[Stream], tables: Tables, *, patience: float = 0.0) -> Looks:
        """The status of each stream by its uid, as `answers`."""
        return await self.answers(map(stream_question, streams), tables, patience=patience)

    async def answers(self, questions: Iterable[LogQuestion], tables: Tables, *, patience: float = 0.0) -> Looks:
        """The known answer to each question by its uid. Looks that are due begin in the background,
        and are waited for `patience` seconds.
        """
        entries = {one.uid: self._entry_of(one, tables) for one in questions}
        await _answered([entry.answer for entry in entries.values()], patience)
        now = self._clock()
        known = {uid: self._ended_of(entry, now) for uid, entry in entries.items()}
        ages = [now - (one.answered_at or now) for one in known.values() if one is not None]
        told = {
            uid: NotYet(max(0.0, now - entries[uid].at)) if one is None else _told(one.answer)
            for uid, one in known.items()
        }
        return Looks(told, max(ages) if ages else None)

    def _entry_of(self, question: LogQuestion, tables: Tables) -> _Entry:
        key, now = (question.uid, *question.holds_for), self._clock()
        with self._lock:
            known = self._entries.get(key)
            if known is not None and not self._is_due(known, now):
                known.wanted_at = now
                return known
            if len(self._entries) >= self._most:
                self._forget(now)
            entry = _Entry(now, now, Future(), before=None if known is None else self._ended_of(known, now))
            if entry.before is not None:
                entry.before = replace(entry.before, before=None)
            self._entries[key] = entry
            entry.answer = self._threads.submit(partial(self._look, entry, question, tables), about=question.about)
            entry.answer.add_done_callback(lambda _: self._note(entry))
        return entry

    def _look(self, entry: _Entry, question: LogQuestion, tables: Tables) -> Any:
        if self._clock() - entry.wanted_at > self._usable:
            return _NOBODY_ASKS
        return question.ask(tables)

    def _note(self, entry: _Entry) -> None:
        entry.answered_at = self._clock()

    def _is_due(self, entry: _Entry, now: float) -> bool:
        """The look did not take place, or its answer is too old. An answer that came late is still taken once."""
        if entry.answer.done() and not _took_place(entry.answer):
            return True
        return entry.answered_at is not None and now - entry.answered_at > self._keep

    def _ended_of(self, entry: _Entry, now: float) -> _Entry | None:
        """The look itself, or the one before it: the newest with an answer that can still be used."""
        for one in (entry, entry.before):
            if one is None or one.answered_at is None or not _took_place(one.answer):
                continue
            if one is entry or now - one.answered_at <= self._usable:
                return one
        return None

    def _forget(self, now: float) -> None:
        for key in [key for key, entry in self._entries.items() if self._is_due(entry, now)]:
            del self._entries[key]


def _took_place(answer: Future[Any]) -> bool:
    if answer.cancelled() or not answer.done():
        return False
    return answer.exception() is not None or answer.result() is not _NOBODY_ASKS


def _told(answer: Future[Any]) -> Any:
    error = answer.exception()
    return answer.result() if error is None else Unreadable(why_unreadable(error))


async def _answered(answers: Iterable[Future[Any]], patience: float) -> None:
    """Returns when all have arrived, or after `patience` seconds. Nobody's look ends by that."""
    left = [answer for answer in answers if not answer.done()]
    if not left or patience <= 0:
        return
    loop, arrived = asyncio.get_running_loop(), asyncio.Event()

    def note(_: Future[Any]) -> None:
        if all(answer.done() for answer in left):
            with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                loop.call_soon_threadsafe(arrived.set)

    for answer in left:
        answer.add_done_callback(note)
    with suppress(TimeoutError):
        await asyncio.wait_for(arrived.wait(), patience)
