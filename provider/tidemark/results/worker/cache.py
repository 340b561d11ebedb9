"""Answers in the result cache: looked up, kept, ended and swept. No step starts Spark."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from tidemark.control.store import ControlStore
from tidemark.errors import StorageRefused, StorageUnreachable, StoreBusy
from tidemark.failpoints import failpoint
from tidemark.results.model.answers import DEFAULT_RULES, Miss, ReuseRules, StoredAnswer, Why, WrittenAnswer
from tidemark.results.planning.explain import why_missed
from tidemark.results.planning.keys import digest_of, expiry
from tidemark.results.store import cached_results
from tidemark.results.worker.asking import Asked
from tidemark.results.worker.files import AnswerLost, OpenAnswer, new_directory, remove_directory, unused_directories

__all__ = ["Hit", "ResultCache", "explained", "forget", "keep", "look_up", "sweep", "sweep_unused"]

log = logging.getLogger(__name__)

READERS_LEAVE = timedelta(hours=1)  # so long the files of an ended answer stay
_USE_IS_NOTED = timedelta(minutes=1)  # writers of the store take turns
_MOST_COMPARED = 20
_MOST_SWEPT = 20
_MOST_TEXT = 10_000


@dataclass(frozen=True)
class ResultCache:
    """The index, the lake's `_tidemark` directory, and the rules of one user of the cache."""

    store: ControlStore
    workspace: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    rules: ReuseRules = DEFAULT_RULES

    def new_directory(self) -> str:
        """A place for the next answer."""
        return new_directory(self.workspace, self.store.new_id())


@dataclass(frozen=True)
class Hit:
    """An answer that is reused, with its files open."""

    answer: StoredAnswer
    opened: OpenAnswer


def look_up(cache: ResultCache, asked: Asked, *, note_use: bool = True) -> Hit | Miss:
    """The answer of the key. Its life is longer from now on, noted once a minute. Else the reason for the miss."""
    now = cache.store.clock()
    found = cache.store.read(lambda connection: cached_results.lookup(connection, asked.key))
    if found is None or found.expires_at <= now:
        return explained(cache, asked, now)
    try:
        opened = OpenAnswer(found.written, cache.options)
    except AnswerLost as error:
        end = partial(cached_results.end, uids=[found.uid], at=now, why=Why.LOST)
        cache.store.write(end)
        return Miss(Why.LOST, f"the files of the answer cannot be read: {error}")
    except (StorageRefused, StorageUnreachable) as error:
        return Miss(Why.LOST, str(error))
    if note_use and now - found.last_used_at >= _USE_IS_NOTED:
        _note_use(cache, found, now)
    return Hit(found, opened)


def _note_use(cache: ResultCache, answer: StoredAnswer, now: datetime) -> None:
    try:
        cache.store.write(partial(cached_results.use, answer=answer, at=now, rules=cache.rules))
    except StoreBusy as error:
        log.warning("The use of the answer %s was not noted: %s", answer.uid, error)


def explained(cache: ResultCache, asked: Asked, now: datetime) -> Miss:
    """The reason why there is no answer of the key, from answers of the same text."""
    same = partial(cached_results.same_text, text_digest=digest_of(asked.text), most=_MOST_COMPARED)
    return why_missed(cache.store.read(same), asked.key, asked.settings, asked.leaves, now)


def keep(cache: ResultCache, asked: Asked, written: WrittenAnswer, *, replace: bool = False) -> StoredAnswer | Miss:
    """Index the written answer, so that it is reused. If another run was first, its answer is. With `replace` an
    earlier one ends. The reason, if the answer is too large.

    The row is the last write, so a killed run leaves files that nothing refers to.
    """
    if written.size > cache.rules.most_answer_bytes:
        problem = f"its {written.size:,} bytes are more than the {cache.rules.most_answer_bytes:,} of one answer"
        return Miss(Why.LARGE, problem)
    now = cache.store.clock()
    latest = now + cache.rules.longest
    answer = StoredAnswer(
        uid=cache.store.new_id(),
        key=asked.key,
        text=asked.text[:_MOST_TEXT],
        text_digest=digest_of(asked.text),
        tables=tuple(asked.leaves),
        settings=asked.settings,
        written=written,
        created_at=now,
        last_used_at=now,
        expires_at=expiry(now, latest, cache.rules),
        latest_at=latest,
    )
    failpoint("answer.indexed.before")
    kept = cache.store.write(partial(cached_results.keep, answer=answer, replace=replace))
    failpoint("answer.indexed")
    sweep(cache, most=_MOST_SWEPT)
    return kept


def forget(cache: ResultCache, answers: Sequence[StoredAnswer]) -> int:
    """End these answers; how many had not ended before. Readers that have one open are not disturbed."""
    uids, now = [answer.uid for answer in answers], cache.store.clock()
    return cache.store.write(partial(cached_results.end, uids=uids, at=now, why=Why.FORGOTTEN))


def sweep(cache: ResultCache, *, most: int) -> tuple[str, ...]:
    """End answers that have expired or do not fit, and remove files of answers that ended an hour ago; their places.

    A second run finds nothing to do. Files that cannot be removed are logged, and are tried again.
    """
    now = cache.store.clock()
    cache.store.write(partial(cached_results.evict, at=now, rules=cache.rules))
    due = cache.store.read(partial(cached_results.ended_before, when=now - READERS_LEAVE, most=most))
    gone = []
    for uid, location in due:
        try:
            remove_directory(location, cache.options)
        except (StorageRefused, StorageUnreachable) as error:
            log.warning("An old answer was not removed: %s", error)
            continue
        gone.append((uid, location))
    if gone:
        cache.store.write(partial(cached_results.note_removed, uids=[uid for uid, _ in gone], at=now))
    return tuple(location for _, location in gone)


def sweep_unused(cache: ResultCache, older_than: datetime, *, dry_run: bool = False) -> tuple[tuple[str, ...], str]:
    """Remove directories that no answer has, and in which nothing was written since; their places, and the first
    problem. A second run finds none.
    """
    used = cache.store.read(cached_results.locations)
    found = unused_directories(cache.workspace, cache.options, used=used, older_than=older_than)
    gone, problem = [], ""
    for location in found:
        try:
            if not dry_run:
                remove_directory(location, cache.options)
        except (StorageRefused, StorageUnreachable) as error:
            problem = problem or str(error)
            continue
        gone.append(location)
    return tuple(gone), problem
