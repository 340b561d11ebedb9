"""How far a stream is behind its source, and how long it can still wait: asked of the source's log, moving nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from tidemark.control import streams as stored_streams
from tidemark.control.store import ControlStore
from tidemark.errors import (
    LakeError,
    LogIncomplete,
    SourceError,
    SourceRecreated,
    StreamStale,
    TidemarkError,
    TrackingInterrupted,
    VersionNotFound,
)
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import BaseOffset, Stream
from tidemark.model.table_log import TableState
from tidemark.planning.staleness import FILE_RETENTION, stale_after
from tidemark.transactions.sources import Tables

__all__ = ["AtRisk", "Outlook", "Standing", "outlook", "standing_of"]

_LOGS_AT_ONCE = 8

T = TypeVar("T")


@dataclass(frozen=True)
class Standing:
    """Where a stream stands against its source at one moment.

    `behind`: versions of the source that the stream has not passed; they need not hold changes for it. `waiting_since`:
    when the oldest of them was committed; None where there is none. `stale_after`: until then Delta keeps what the
    stream needs (R81). `problem`: why the stream cannot be read any more, None where it can.
    """

    head: int
    behind: int
    waiting_since: datetime | None
    stale_after: datetime
    problem: TidemarkError | None

    def stale(self, now: datetime) -> bool:
        """Whether it cannot be read, or may soon not be: `now` is past STALE_AFTER (R87)."""
        return self.problem is not None or now > self.stale_after

    def time_left(self, now: datetime) -> timedelta:
        """The time until STALE_AFTER, none once that has passed or where the stream cannot be read."""
        return timedelta() if self.problem is not None else max(timedelta(), self.stale_after - now)


@dataclass(frozen=True)
class AtRisk:
    """A stream that is stale or soon may be. `reason`: why it cannot be read any more; None where it still can.

    `stale_after`, `hours_left` and `behind` are None where the source's log cannot be read.
    """

    stream: str
    table: str
    stale_after: datetime | None
    hours_left: float | None
    behind: int | None
    reason: str | None

    def __str__(self) -> str:
        if self.reason is not None:
            return self.reason
        hours, behind = self.hours_left or 0.0, self.behind
        left = f"has {hours:.1f} hours left" if hours else "may be stale already"
        return f"Stream {self.stream!r} on {self.table} {left}; it is {behind} versions behind."


@dataclass(frozen=True)
class Outlook:
    """What was found: the streams at risk, by the time they have left, and those whose lake did not answer."""

    at_risk: tuple[AtRisk, ...]
    unknown: tuple[tuple[str, str], ...]  # stream, and what was in the way


def outlook(store: ControlStore, names: Sequence[str] | None, tables: Tables, *, within: timedelta) -> Outlook:
    """Which streams (None: all) cannot be read any more, or have less than `within` left until STALE_AFTER.

    Logs are read in a few threads. A source that is gone or damaged is a risk; a storage that does not answer is
    unknown, for it may be there in a minute. Raises StreamNotFound, StoreError.
    """
    found = store.read(
        lambda c: stored_streams.live(c) if names is None else tuple(stored_streams.find(c, name) for name in names)
    )
    now = store.clock()
    with ThreadPoolExecutor(_LOGS_AT_ONCE) as pool:
        looked = list(pool.map(lambda stream: _look(stream, tables, now, within), found))
    return Outlook(
        at_risk=tuple(sorted(_only(looked, AtRisk), key=lambda one: (one.hours_left or 0.0, one.stream))),
        unknown=tuple(_only(looked, tuple)),
    )


def _look(stream: Stream, tables: Tables, now: datetime, within: timedelta) -> AtRisk | tuple[str, str] | None:
    try:
        standing = standing_of(stream, tables)
    except SourceError as error:
        return AtRisk(stream.name, stream.source.name, None, None, None, str(error))
    except (LakeError, OSError) as error:
        return stream.name, str(error)
    if standing.time_left(now) >= within and not standing.stale(now):
        return None
    return AtRisk(
        stream=stream.name,
        table=stream.source.name,
        stale_after=standing.stale_after,
        hours_left=standing.time_left(now).total_seconds() / 3600,
        behind=standing.behind,
        reason=None if standing.problem is None else str(standing.problem),
    )


def _only(found: Iterable[object], kind: type[T]) -> list[T]:
    return [one for one in found if isinstance(one, kind)]


def standing_of(stream: Stream, tables: Tables) -> Standing:
    """Ask the logs of the stream's tables: head, state, and the oldest unread commit, however long the logs are.

    Raises TableNotFound, NotADeltaTable, CorruptLog, UnsupportedCheckpoint, and what an unreachable storage raises.
    """
    found = [_standing_in(stream, base, tables(base.table)) for base in stream.bases]
    return Standing(
        head=sum(one.head for one in found),
        behind=sum(one.behind for one in found),
        waiting_since=min((one.waiting_since for one in found if one.waiting_since), default=None),
        stale_after=min(one.stale_after for one in found),  # R80: a view has what its bases all have
        problem=next((one.problem for one in found if one.problem), None),
    )


def _standing_in(stream: Stream, base: BaseOffset, log: DeltaLog) -> Standing:
    head = log.head()
    state = log.state(head)
    problem = _problem(stream, base, log, state)
    waiting_since = None
    if problem is None and head > base.version:
        try:
            waiting_since = log.timestamp(base.version + 1)
        except (LogIncomplete, VersionNotFound) as error:  # cleaned up since, or the log was cut
            problem = _stale(stream, base, str(error))
    return Standing(
        head=head,
        behind=max(0, head - base.version),
        waiting_since=waiting_since,
        stale_after=stale_after(stream.anchor, state.metadata.configuration.get(FILE_RETENTION)),
        problem=problem,
    )


def _problem(stream: Stream, base: BaseOffset, log: DeltaLog, state: TableState) -> TidemarkError | None:
    table, expected = base.table.name, base.table.table_id
    if state.table_id != expected:
        return SourceRecreated(table=table, stream=stream.name, path=log.uri, found=state.table_id, expected=expected)
    if not stream.keys and not state.row_tracking:
        return TrackingInterrupted(table=table, stream=stream.name, problem="row tracking is off now")
    needed = base.version + 1
    if state.version >= needed and log.earliest() > needed:
        return _stale(stream, base, f"commit {needed} is no longer in the log")
    return None


def _stale(stream: Stream, base: BaseOffset, reason: str) -> StreamStale:
    return StreamStale(stream=stream.name, version=base.version, table=base.table.name, reason=reason)
