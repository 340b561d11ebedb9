"""Which streams are at risk of losing changes: stale or nearly so, failing, or not moving although there is data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Any

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.errors import LakeError, LogIncomplete, SourceError, VersionNotFound
from tidemark.model.streams import BaseOffset, Stream
from tidemark.streams.model.health import StreamHealth
from tidemark.streams.planning.staleness import Staleness
from tidemark.streams.store import health as counted
from tidemark.streams.store import streams as stored_streams
from tidemark.streams.worker.opening import wherever
from tidemark.streams.worker.sources import Tables
from tidemark.streams.worker.standing import Standing, standing_of
from tidemark.streams.worker.turns import Turns

__all__ = ["LOGS_AT_ONCE", "AtRisk", "Found", "Limit", "Outlook", "Risk", "outlook"]

LOGS_AT_ONCE = 8
_PATIENCE = timedelta(seconds=50)  # a triggerer waits for a minute


class Risk(StrEnum):
    """Why a stream is told of."""

    STALE = "stale"  # it cannot be read any more, or has little time left
    FAILING = "failing"  # the last attempts to consume it all failed
    STUCK = "stuck"  # changes wait, and the offset has not moved


@dataclass(frozen=True)
class Limit:
    """From where on a stream is at risk: less than `time_left` until STALE_AFTER (R81); `failures` in a row; changes
    that have waited for `unmoved` while the offset stood still. None: that is not asked.
    """

    time_left: timedelta
    failures: int | None = None
    unmoved: timedelta | None = None


@dataclass(frozen=True)
class AtRisk:
    """A stream at risk. `reason`: why it cannot be read any more; None where it still can. `risks`: why it is told of.

    `stale_after`, `hours_left`, `behind` and the bytes are None where the source's log cannot be read. `lost_version`:
    the first version of the source whose changes cannot be read any more. `bytes_kept`: of data files that the source
    has no more and the stream needs; `bytes_past_retention` of them only streams keep. `unmoved_hours`: for how long
    changes have waited and the offset has not moved; None where none wait, or where that was not asked.
    """

    stream: str
    table: str
    stale_after: datetime | None
    hours_left: float | None
    behind: int | None
    reason: str | None
    staleness: Staleness = Staleness.STALE
    lost_version: int | None = None
    bytes_kept: int | None = None
    bytes_past_retention: int | None = None
    risks: tuple[str, ...] = (Risk.STALE.value,)
    failures_in_row: int = 0
    last_error: str | None = None
    unmoved_hours: float | None = None

    def __str__(self) -> str:
        words = {Risk.STALE: self._stale, Risk.FAILING: self._failing, Risk.STUCK: self._stuck}
        return " ".join(words[Risk(risk)]() for risk in self.risks)

    def _stale(self) -> str:
        if self.reason is not None:
            return self.reason
        hours, behind = self.hours_left or 0.0, self.behind
        left = f"has {hours:.1f} hours left" if hours else "may be stale already"
        return f"Stream {self.stream!r} on {self.table} {left}; it is {behind} versions behind."

    def _failing(self) -> str:
        times = f"{self.failures_in_row} attempts in a row"
        return f"Stream {self.stream!r} could not be consumed in {times}, the last time for {self.last_error}"

    def _stuck(self) -> str:
        hours = f"{self.unmoved_hours or 0.0:.1f} hours"
        return f"Stream {self.stream!r} on {self.table} has had changes for {hours}, and its offset has not moved."

    def plain(self) -> dict[str, Any]:
        """In plain values; times in ISO 8601."""
        until = None if self.stale_after is None else self.stale_after.isoformat()
        return {**vars(self), "stale_after": until, "staleness": self.staleness.value, "risks": list(self.risks)}


@dataclass(frozen=True)
class Outlook:
    """What was found: the streams at risk, by the time they have left, and those whose lake did not answer."""

    at_risk: tuple[AtRisk, ...]
    unknown: tuple[tuple[str, str], ...]  # stream, and what was in the way


Found = tuple[AtRisk | None, tuple[str, str] | None]
"""A stream at risk; or its name, and what was in the way."""


def outlook(
    store: ControlStore,
    names: Sequence[str] | None,
    tables: Tables,
    limit: Limit,
    *,
    patience: timedelta = _PATIENCE,
    turns: Turns[Found] | None = None,
) -> Outlook:
    """Which streams (None: all) are at risk of losing changes.

    Logs are read in a few threads, those of `turns` if the process looks again and again. A source that is gone or
    damaged is a risk; a storage that does not answer, or not within `patience`, is unknown, for it may be there in a
    minute: it holds up no other. Raises StreamNotFound, StoreError.
    """
    found = store.read(lambda connection: _streams(connection, names))
    now = store.clock()

    def look(one: tuple[Stream, StreamHealth]) -> Found:
        return _look(*one, tables, now, limit)

    with _threads() if turns is None else nullcontext(turns) as taken:
        looked = _looked(found, look, taken, patience)
    return Outlook(
        at_risk=tuple(
            sorted((risk for risk, _ in looked if risk), key=lambda one: (one.hours_left or 0.0, one.stream))
        ),
        unknown=tuple(unknown for _, unknown in looked if unknown),
    )


@contextmanager
def _threads() -> Iterator[Turns[Found]]:
    """For one outlook; a look that a lake keeps waiting is left to end by itself."""
    pool = ThreadPoolExecutor(LOGS_AT_ONCE, thread_name_prefix="tidemark-outlook")
    turns: Turns[Found] = Turns(pool)
    try:
        yield turns
    finally:
        turns.close()
        pool.shutdown(wait=False, cancel_futures=True)


def _looked(
    streams: Sequence[tuple[Stream, StreamHealth]],
    look: Callable[[tuple[Stream, StreamHealth]], Found],
    turns: Turns[Found],
    patience: timedelta,
) -> list[Found]:
    asked = [
        turns.submit([base.table.path for base in stream.bases], partial(look, (stream, health)))
        for stream, health in streams
    ]
    wait(asked, timeout=patience.total_seconds())
    problem = f"its lake has not answered for {patience.total_seconds():.0f} s"
    return [
        (None, (stream.name, problem)) if answer.cancel() or not answer.done() else answer.result()
        for (stream, _), answer in zip(streams, asked, strict=True)
    ]


def _streams(connection: sa.Connection, names: Sequence[str] | None) -> list[tuple[Stream, StreamHealth]]:
    if names is None:
        found: Sequence[Stream] = stored_streams.live(connection)
    else:
        found = [stored_streams.find(connection, name) for name in names]
    how = counted.healths(connection)
    return [(stream, how.get(stream.uid, StreamHealth())) for stream in found]


def _look(stream: Stream, health: StreamHealth, tables: Tables, now: datetime, limit: Limit) -> Found:
    standing: Standing | None = None
    reason: str | None = None
    since: datetime | None = None
    unknown: tuple[str, str] | None = None
    try:
        standing = standing_of(stream, tables, now=now)
        reason = None if standing.problem is None else str(standing.problem)
        since = None if limit.unmoved is None else _waiting_since(stream, standing, tables, now - limit.unmoved)
    except SourceError as error:
        reason = str(error)
    except (LakeError, OSError) as error:
        unknown = stream.name, str(error)
    risks = _risks(health, standing, reason, since, now, limit)
    if not risks:
        return None, unknown
    return _at_risk(stream, health, standing, reason, risks, since, now), unknown


def _risks(
    health: StreamHealth,
    standing: Standing | None,
    reason: str | None,
    since: datetime | None,
    now: datetime,
    limit: Limit,
) -> tuple[Risk, ...]:
    nearly = standing is not None and (standing.stale(now) or standing.time_left(now) < limit.time_left)
    found = {
        Risk.STALE: reason is not None or nearly,
        Risk.FAILING: limit.failures is not None and health.failures_in_row >= limit.failures,
        Risk.STUCK: since is not None and limit.unmoved is not None and now - since >= limit.unmoved,
    }
    return tuple(risk for risk, is_so in found.items() if is_so)


def _at_risk(
    stream: Stream,
    health: StreamHealth,
    standing: Standing | None,
    reason: str | None,
    risks: Sequence[Risk],
    since: datetime | None,
    now: datetime,
) -> AtRisk:
    failing = health.failures_in_row > 0
    kept = None if standing is None else standing.kept
    return AtRisk(
        stream=stream.name,
        table=stream.source.name,
        stale_after=None if standing is None else standing.stale_after,
        hours_left=None if standing is None else standing.time_left(now).total_seconds() / 3600,
        behind=None if standing is None else standing.behind,
        reason=reason,
        staleness=Staleness.STALE if standing is None else standing.staleness(now),
        lost_version=None if standing is None else standing.lost_version,
        bytes_kept=None if kept is None else kept.bytes,
        bytes_past_retention=None if kept is None else kept.bytes_past_retention,
        risks=tuple(risk.value for risk in risks),
        failures_in_row=health.failures_in_row,
        last_error=f"{health.last_error_type}: {health.last_error}" if failing else None,
        unmoved_hours=None if since is None else (now - since).total_seconds() / 3600,
    )


def _waiting_since(stream: Stream, standing: Standing, tables: Tables, long_ago: datetime) -> datetime | None:
    """Since when changes have waited and the offset stood still; None where none wait. Commits without changes are told
    from others only where the oldest unread one is from before `long_ago`.
    """
    if standing.problem is not None:
        return None
    if stream.initial_rows_pending:
        return stream.anchor
    if standing.waiting_since is None:
        return None
    first = standing.waiting_since
    if max(first, stream.anchor) <= long_ago:
        try:
            found = [time for base in stream.bases if (time := _first_change(base, tables)) is not None]
        except (LogIncomplete, VersionNotFound):  # cleaned up since: it is told of as stale the next time
            return None
        if not found:
            return None
        first = min(found)
    return max(first, stream.anchor)


def _first_change(base: BaseOffset, tables: Tables) -> datetime | None:
    """When the first commit behind the offset that changed data was made; None where there is none."""
    log = wherever(tables)(base.table)
    for version in range(base.version + 1, log.head() + 1):
        if log.has_changes(version - 1, version):
            return log.timestamp(version)
    return None
