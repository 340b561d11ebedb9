"""Observation of a stream by a trigger; a source without a commit since the last one costs one listing."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from threading import Lock
from typing import Any

from tidemark.errors import LogIncomplete, VersionNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.segments import commit_name
from tidemark.lake.storage import Storage
from tidemark.model.streams import BaseOffset, Stream, TableRef
from tidemark.streams.planning.bounds import UNBOUNDED
from tidemark.streams.worker.sources import SourceHead, Tables, head_of, window_from

__all__ = ["Observation", "ObservationCache"]

_MOST = 20_000


@dataclass(frozen=True)
class Observation:
    """A stream, the newest version of its source, and whether the next window has something to deliver (R120, R123).

    `waiting_since`: when the oldest version that the stream has not passed was committed; None where nothing waits.
    """

    stream: Stream
    head: int
    has_data: bool
    waiting_since: datetime | None

    @property
    def behind(self) -> int:
        """Versions of the source that the stream has not passed."""
        return max(0, self.head - self.stream.offset.version)

    def lag(self, now: datetime) -> float | None:
        """Seconds since the oldest unread version was committed, roughly: it may hold nothing for the stream."""
        return None if self.waiting_since is None else round(max(0.0, (now - self.waiting_since).total_seconds()), 3)


@dataclass(frozen=True)
class _Fingerprint:
    """State of stream and table at an observation.

    `written` is the head's file time: a recreated table has another. `next_there`: log cleanup has not taken the first
    unread commit.
    """

    offset: int
    initial_rows: bool
    table_id: str
    path: str
    head: int
    written: datetime
    next_there: bool


class ObservationCache:
    """The last observation of each stream; it holds as long as stream and source have the same fingerprint."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._seen: OrderedDict[str, tuple[tuple[_Fingerprint | None, ...], Observation]] = OrderedDict()

    def observe(self, stream: Stream, options: Mapping[str, Any]) -> Observation:
        """The stream's observation now. Raises as `begin` does for its source."""
        fingerprints = [
            _fingerprint_of(stream, base, DeltaLog(Storage(base.table.path, options))) for base in stream.bases
        ]
        fingerprint = None if None in fingerprints else tuple(fingerprints)
        with self._lock:
            seen = self._seen.get(stream.uid)
        if seen is not None and seen[0] == fingerprint:
            return replace(seen[1], stream=stream)
        observation = _observed(stream, partial(_opened, options))
        if fingerprint is not None:
            self._keep(stream.uid, fingerprint, observation)
        return observation

    def _keep(self, uid: str, fingerprint: tuple[_Fingerprint | None, ...], observation: Observation) -> None:
        with self._lock:
            self._seen[uid] = (fingerprint, observation)
            self._seen.move_to_end(uid)
            while len(self._seen) > _MOST:
                self._seen.popitem(last=False)


def _opened(options: Mapping[str, Any], table: TableRef | str) -> DeltaLog:
    return DeltaLog.open(table.path if isinstance(table, TableRef) else table, options)


def _fingerprint_of(stream: Stream, base: BaseOffset, log: DeltaLog) -> _Fingerprint | None:
    """None where the head has no commit file to go by."""
    head, unread = log.head(), base.version + 1
    if head < 0:
        return None
    try:
        written = log.storage.modified_at(commit_name(head))
    except FileNotFoundError:
        return None
    return _Fingerprint(
        offset=base.version,
        initial_rows=stream.initial_rows_pending,
        table_id=base.table.table_id,
        path=base.table.path,
        head=head,
        written=written,
        next_there=unread > head or log.storage.exists(commit_name(unread)),
    )


def _observed(stream: Stream, tables: Tables) -> Observation:
    source = head_of(stream, tables, UNBOUNDED)
    found = not source.silent(window_from(stream, source.ends, stream.anchor))
    waiting = _first_unread(stream, source, tables) if found else None
    return Observation(stream=stream, head=source.head, has_data=found, waiting_since=waiting)


def _first_unread(stream: Stream, source: SourceHead, tables: Tables) -> datetime | None:
    """When the first version past the offset was committed; None for initial rows alone, or where its file is gone."""
    unread = [base for base, end in zip(stream.bases, source.ends, strict=True) if end > base.version]
    try:
        return min((tables(base.table).timestamp(base.version + 1) for base in unread), default=None)
    except (LogIncomplete, VersionNotFound):
        return None
