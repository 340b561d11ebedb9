"""The removed files of the commits after a stream's offset, kept between looks. Sensors look every minute, and a slow
stream has thousands of commits behind its offset.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import TypeVar

from tidemark.changes.planning.removals import Removal, Removals
from tidemark.changes.planning.sets.at_stake import Way
from tidemark.changes.planning.sets.forms import physical_rows
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.foreign_json import whole_number
from tidemark.model.table_log import AddFile, Commit, Metadata, RemoveFile, TableState
from tidemark.streams.planning.staleness import file_retention

__all__ = ["COMMIT_CACHE", "CommitCache", "UnreadCommits", "shortest_retention"]

F = TypeVar("F", AddFile, RemoveFile)
Parts = tuple[tuple[Way, ...], ...]
_MOST_TABLES = 512  # offsets in tables
_MOST_FILES = 200_000  # over all of them; each takes some hundred bytes
_LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)
_VACUUM = "VACUUM START"


@dataclass
class UnreadCommits:
    """The commits after a version of a table up to `head`, with all that concerns VACUUM.

    `shortest`: the shortest time for which removed files were kept since that version. `vacuumed`: what was removed
    before it, a VACUUM in these commits may have taken. The commits themselves are held only once somebody has asked
    for `parts`.
    """

    log: DeltaLog
    before: TableState
    head: int
    shortest: timedelta
    vacuumed: datetime = _LONG_AGO
    removals: Removals = field(default_factory=Removals)
    _removed: tuple[Removal, ...] | None = None
    _commits: list[Commit] | None = None
    _parts: dict[object, Parts] = field(default_factory=dict)
    _last: int = 0

    @property
    def removed(self) -> tuple[Removal, ...]:
        """The files that these commits removed and did not bring back."""
        if self._removed is None:
            self._removed = self.removals.removals()
        return self._removed

    def parts(self, of: object, find: Callable[[TableState, list[Commit]], Iterable[tuple[Way, ...]]]) -> Parts:
        """The answer of `find` for the state before and the commits; `of` names it."""
        if self._commits is None:
            self._commits = [_slim(commit) for commit in self.log.commits(self.before.version, self.head)]
        if of not in self._parts:
            self._parts[of] = tuple(find(self.before, self._commits))
        return self._parts[of]

    @property
    def files(self) -> int:
        """How many it holds in memory."""
        held = sum(len(commit.adds) + len(commit.removes) for commit in self._commits or ())
        asked = sum(len(way.files) for parts in self._parts.values() for ways in parts for way in ways)
        return len(self.removals) + held + asked

    def go_on(self, log: DeltaLog, head: int) -> bool:
        """Read on to `head`; False, if the log is not the one that was read: then nothing of this holds."""
        self.log = log
        if head < self.head:
            return False
        known = max(self.head - 1, self.before.version)
        for commit in log.commits(known, head):
            if commit.version > self.head:
                self._take(commit)
            elif _fingerprint(commit) != self._last:
                return False
        return True

    def _take(self, commit: Commit) -> None:
        self.removals.take(commit)
        if commit.metadata is not None:
            self.shortest = min(self.shortest, file_retention(commit.metadata.configuration))
        if commit.operation == _VACUUM:
            self.vacuumed = max(self.vacuumed, _reach_of(commit))
        if self._commits is not None:
            self._commits.append(_slim(commit))
        self._removed, self._parts = None, {}
        self.head, self._last = commit.version, _fingerprint(commit)


class CommitCache:
    """Unread commits by table and offset; drops the least recently used first. For any number of threads."""

    def __init__(self, most_tables: int = _MOST_TABLES, most_files: int = _MOST_FILES) -> None:
        self._most_tables, self._most_files = most_tables, most_files
        self._entries: OrderedDict[tuple[str, str, int], _Entry] = OrderedDict()
        self._lock = Lock()

    @contextmanager
    def after(self, version: int, log: DeltaLog, head: TableState) -> Iterator[UnreadCommits]:
        """The commits after the version up to `head`, for one thread at a time. Only those are read that were not at
        the last time. Raises LogIncomplete, VersionNotFound, CorruptLog.
        """
        key = (log.uri, head.table_id, version)
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
        with entry.lock:
            if entry.commits is None or not entry.commits.go_on(log, head.version):
                entry.commits = None
                entry.commits = _read(log, version, head.version)
            yield entry.commits
            entry.files = entry.commits.files
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        files = sum(entry.files for entry in self._entries.values())
        while len(self._entries) > self._most_tables or files > self._most_files:
            files -= self._entries.popitem(last=False)[1].files

    def __len__(self) -> int:
        return len(self._entries)


@dataclass
class _Entry:
    lock: Lock = field(default_factory=Lock)
    commits: UnreadCommits | None = None
    files: int = 0


COMMIT_CACHE = CommitCache()


def shortest_retention(before: TableState, commits: Iterable[Commit]) -> timedelta:
    """The shortest time for which the table was set to keep removed files, from `before` on."""
    metadata: list[Metadata] = [before.metadata, *(c.metadata for c in commits if c.metadata is not None)]
    return min(file_retention(one.configuration) for one in metadata)


def _read(log: DeltaLog, version: int, head: int) -> UnreadCommits:
    before = log.state(version)
    found = UnreadCommits(log, before, version, file_retention(before.metadata.configuration))
    found.go_on(log, head)
    return found


def _reach_of(vacuum: Commit) -> datetime:
    said = vacuum.operation_parameters
    millis = whole_number(said.get("specifiedRetentionMillis", said.get("defaultRetentionMillis")))
    try:
        return vacuum.timestamp - timedelta(milliseconds=millis or 0)
    except OverflowError:
        return vacuum.timestamp


def _fingerprint(commit: Commit) -> int:
    """Differs between a commit and another of its version in a log that was cut and rewritten. Times of files
    depend on where reading began.
    """
    return hash(repr(replace(commit, timestamp=_LONG_AGO)))


def _slim(commit: Commit) -> Commit:
    """The commit without what only readers of rows need."""
    return replace(
        commit,
        adds=tuple(_slim_file(file) for file in commit.adds),
        removes=tuple(_slim_file(file) for file in commit.removes),
        user_metadata=None,
        transactions={},
    )


def _slim_file(file: F) -> F:
    rows = physical_rows(file.stats)
    return replace(file, stats=None if rows is None else json.dumps({"numRecords": rows}))
