"""Looks that threads have begun and not ended: a lake that hangs keeps a few threads, and no other object's turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from tidemark.streams.worker.questions import LogQuestion

__all__ = ["LookRound", "OpenLooks"]

MOST = 64  # threads that one storage may keep


class OpenLooks:
    """The open looks of all rounds of a process.

    A table that an open look of an earlier round reads is not asked again, however many objects are on it. A storage
    with `most` open looks is down, and none of its tables is asked. Such objects have had their turn.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._lock = Lock()
        self._tables: Counter[str] = Counter()
        self._storages: Counter[str] = Counter()

    def next_round(self, questions: Mapping[str, LogQuestion]) -> LookRound:
        """A round that asks those of these questions whose tables are free."""
        with self._lock:
            busy = frozenset(self._tables)
            down = frozenset(storage for storage, count in self._storages.items() if count >= self._most)
        free = {uid: one for uid, one in questions.items() if not busy & one.about and not down & _storages_of(one)}
        return LookRound(self, questions, free, frozenset(questions.keys() - free.keys()))

    @contextmanager
    def opened(self, question: LogQuestion) -> Iterator[None]:
        """The look is open while the context is."""
        with self._lock:
            self._tables.update(question.about)
            self._storages.update(_storages_of(question))
        try:
            yield
        finally:
            with self._lock:
                self._tables -= Counter(question.about)
                self._storages -= Counter(_storages_of(question))


def _storages_of(question: LogQuestion) -> frozenset[str]:
    """The buckets and hosts of its tables; local disks are one storage."""
    found = (path.partition("://") for path in question.about)
    return frozenset(f"{scheme}://{rest.partition('/')[0]}" if sign else "" for scheme, sign, rest in found)


@dataclass(frozen=True)
class LookRound:
    """One round. `questions`: those that are asked. `put_off`: those whose tables or storages hang."""

    looks: OpenLooks
    wished: Mapping[str, LogQuestion]
    questions: Mapping[str, LogQuestion]
    put_off: frozenset[str]
    _begun: set[str] = field(default_factory=set)

    @property
    def no_answers(self) -> dict[str, Any]:
        """None for each wished one: the answers before anything is asked."""
        return dict.fromkeys(self.wished)

    @contextmanager
    def opened(self, question: LogQuestion) -> Iterator[None]:
        """The look begins, which is the turn of its object."""
        self._begun.add(question.uid)
        with self.looks.opened(question):
            yield

    def waits(self, uid: str) -> bool:
        """Whether the object has had no turn in this round."""
        return uid not in self._begun and uid not in self.put_off
