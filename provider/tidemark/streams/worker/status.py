"""How far a stream is behind its source, and how long it can still wait: read from the source's log, moving nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from tidemark.changes.planning.removals import KeptBytes
from tidemark.changes.planning.views.starts import read_at_start
from tidemark.errors import (
    LogIncomplete,
    SourceRecreated,
    StreamStale,
    TidemarkError,
    TrackingInterrupted,
    VersionNotFound,
)
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import BaseOffset, Stream
from tidemark.model.table_log import TableState
from tidemark.streams.planning.staleness import Staleness, retention_of
from tidemark.streams.planning.stream_state import LogFacts
from tidemark.streams.worker.missing_files import Unread, unread
from tidemark.streams.worker.opening import wherever
from tidemark.streams.worker.sources import Tables

__all__ = ["StreamStatus", "status_of"]


@dataclass(frozen=True)
class StreamStatus:
    """The state of a stream against its source at one moment.

    `behind`: versions of the source that the stream has not passed; they need not hold changes for it. `waiting_since`:
    when the oldest of them was committed; None where there is none. `stale_after`: until then what the stream needs is
    kept (R81). `problem`: why the stream cannot be read any more, None where it can. `lost_version`: the first version
    of the source whose changes cannot be read any more. `kept`: the data files that only past versions have and the
    stream keeps alive; None if the commits were not looked through.
    """

    head: int
    behind: int
    waiting_since: datetime | None
    stale_after: datetime
    problem: TidemarkError | None
    lost_version: int | None = None
    kept: KeptBytes | None = None

    @property
    def log_facts(self) -> LogFacts:
        """The part of it that decides the state of the stream."""
        return LogFacts(self.problem is not None, self.behind, self.stale_after)

    def staleness(self, now: datetime) -> Staleness:
        """The forecast and what is really so, told apart (R87)."""
        if self.problem is not None:
            return Staleness.STALE
        return Staleness.FORECAST if now > self.stale_after else Staleness.FRESH

    def stale(self, now: datetime) -> bool:
        """Whether it cannot be read, or may soon not be: `now` is past STALE_AFTER (R87)."""
        return self.staleness(now) is not Staleness.FRESH

    def time_left(self, now: datetime) -> timedelta:
        """The time until STALE_AFTER, none once that has passed or where the stream cannot be read."""
        return timedelta() if self.problem is not None else max(timedelta(), self.stale_after - now)


def status_of(stream: Stream, tables: Tables, *, now: datetime | None = None) -> StreamStatus:
    """Ask the logs of the stream's tables: head, state, and the oldest unread commit, however long the logs are.

    With `now` all unread commits are looked through for files that the stream has lost to VACUUM and files that it
    keeps. A table that was moved is asked at its new place (R90). Raises TableNotFound, NotADeltaTable, CorruptLog,
    UnsupportedCheckpoint, and what an unreachable storage raises.
    """
    if stream.view is None:
        tables = wherever(tables)
    starts = _Starts(stream, tables)
    found = [
        _status_in(stream, base, tables(base.table), now, partial(starts.hold, number))
        for number, base in enumerate(stream.bases)
    ]
    kept = [one.kept for one in found if one.kept is not None]
    return StreamStatus(
        head=sum(one.head for one in found),
        behind=sum(one.behind for one in found),
        waiting_since=min((one.waiting_since for one in found if one.waiting_since), default=None),
        stale_after=min(one.stale_after for one in found),  # R80: a view has what its bases all have
        problem=next((one.problem for one in found if one.problem), None),
        lost_version=next((one.lost_version for one in found if one.problem), None),
        kept=_sum_of(kept) if kept else None,
    )


def _sum_of(kept: Sequence[KeptBytes]) -> KeptBytes:
    return KeptBytes(
        sum(one.files for one in kept),
        sum(one.bytes for one in kept),
        sum(one.bytes_past_retention for one in kept),
    )


class _Starts:
    """The base tables that the stream's view reads whole at the offset; their logs are asked when it matters."""

    def __init__(self, stream: Stream, tables: Tables) -> None:
        self._stream, self._tables = stream, tables
        self._found: frozenset[int] | None = None

    def hold(self, number: int) -> bool:
        """Whether this table is one of them."""
        if self._stream.view is None:
            return False
        if self._found is None:
            if self._stream.keys:  # it compares all rows of both ends
                self._found = frozenset(range(len(self._stream.bases)))
                return True
            changed = [index for index, base in enumerate(self._stream.bases) if _has_changed(self._tables, base)]
            self._found = read_at_start(self._stream.view, changed, self._stream.mode)
        return number in self._found


def _has_changed(tables: Tables, base: BaseOffset) -> bool:
    log = tables(base.table)
    try:
        return log.has_changes(base.version, log.head())
    except (LogIncomplete, VersionNotFound):
        return True


def _status_in(
    stream: Stream, base: BaseOffset, log: DeltaLog, now: datetime | None, rows_at_start: Callable[[], bool]
) -> StreamStatus:
    head = log.head()
    state = log.state(head)
    problem = _problem(stream, base, log, state)
    waiting_since, lost_version, found = None, None, None
    if isinstance(problem, StreamStale):
        lost_version = base.version + 1
    if problem is None and head > base.version:
        try:
            waiting_since = log.timestamp(base.version + 1)
            found = None if now is None else unread(stream, base, log, state, now, rows_at_start=rows_at_start)
        except (LogIncomplete, VersionNotFound) as error:  # cleaned up since, or the log was cut
            problem, lost_version = _stale(stream, base, str(error)), base.version + 1
    if found is not None and found.missing is not None:
        problem, lost_version = _stale(stream, base, _words(found)), found.missing.version
    return StreamStatus(
        head=head,
        behind=max(0, head - base.version),
        waiting_since=waiting_since,
        stale_after=retention_of(state.metadata.configuration).stale_after(stream.anchor),
        problem=problem,
        lost_version=lost_version,
        kept=_kept(found, problem, now),
    )


def _kept(unread_changes: Unread | None, problem: TidemarkError | None, now: datetime | None) -> KeptBytes | None:
    if unread_changes is not None:
        return unread_changes.kept
    return None if now is None or problem is not None else KeptBytes()


def _words(unread_changes: Unread) -> str:
    missing = unread_changes.missing
    if missing is None:
        return ""
    lost = f"{missing.files}, as {missing.first}"
    return f"VACUUM has removed files that the changes of version {missing.version} need: {lost}"


def _problem(stream: Stream, base: BaseOffset, log: DeltaLog, state: TableState) -> TidemarkError | None:
    table, expected = base.table.name, base.table.table_id
    if state.table_id != expected:
        return SourceRecreated(table=table, stream=stream.name, path=log.uri, found=state.table_id, expected=expected)
    if not stream.keys and not state.row_tracking:
        return TrackingInterrupted(table=table, stream=stream.name, problem="row tracking is off now")
    needed = base.version + 1
    if state.version >= needed and not log.goes_on_from(base.version):
        return _stale(stream, base, _cut(log, needed))
    return None


def _cut(log: DeltaLog, needed: int) -> str:
    if log.earliest() > needed:
        return f"commit {needed} is no longer in the log"
    return f"the log no longer has a checkpoint of version {needed - 1}, nor the commits to build it"


def _stale(stream: Stream, base: BaseOffset, reason: str) -> StreamStale:
    return StreamStale(stream=stream.name, version=base.version, table=base.table.name, reason=reason)
