"""Which streams are at risk of losing changes: stale or nearly so, failing, or not moving although there is data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
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
from tidemark.streams.planning.names import is_of_a_view
from tidemark.streams.planning.staleness import Staleness
from tidemark.streams.store import health as counted
from tidemark.streams.store import streams as stored_streams
from tidemark.streams.worker.background import why_unreadable
from tidemark.streams.worker.opening import wherever
from tidemark.streams.worker.sources import Tables
from tidemark.streams.worker.status import StreamStatus, status_of
from tidemark.streams.worker.threads import READS_OF_ONE_TABLE, OwnThreads

__all__ = ["LOGS_AT_ONCE", "Assessment", "Limit", "Risk", "RiskReport", "StreamRisk", "risk_report"]

LOGS_AT_ONCE = 8
_PATIENCE = timedelta(seconds=50)  # a triggerer waits for a minute


class Risk(StrEnum):
    """Why a stream is reported."""

    STALE = "stale"  # it cannot be read any more, or has little time left
    FAILING = "failing"  # the last attempts to consume it all failed
    STUCK = "stuck"  # changes wait, and the offset has not moved


@dataclass(frozen=True)
class Limit:
    """From where on a stream is at risk: less than `time_left` until STALE_AFTER (R81), or `failures` in a row. Or
    changes have waited for `unmoved` while the offset did not move. None: that is not asked.
    """

    time_left: timedelta
    failures: int | None = None
    unmoved: timedelta | None = None


@dataclass(frozen=True)
class StreamRisk:
    """A stream at risk. `reason`: why it cannot be read any more; None where it still can. `risks`: why it is reported.

    `stale_after`, `hours_left`, `behind` and the bytes are None where the source's log cannot be read. `lost_version`:
    the first version of the source whose changes cannot be read any more. `bytes_kept`: of data files that the source
    has no more and the stream needs; `bytes_past_retention` of them only streams keep. `unmoved_hours`: for how long
    changes have waited and the offset has not moved; None if none wait or it was not asked.
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
class RiskReport:
    """The streams at risk, by the time they have left, and those whose lake did not answer."""

    at_risk: tuple[StreamRisk, ...]
    unknown: tuple[tuple[str, str], ...]  # stream, and what was in the way


Assessment = tuple[StreamRisk | None, tuple[str, str] | None]
"""A stream at risk, if it is; and its name with the obstacle, if its lake did not answer."""


def risk_report(
    store: ControlStore,
    names: Sequence[str] | None,
    tables: Tables,
    limit: Limit,
    *,
    patience: timedelta = _PATIENCE,
    threads: OwnThreads | None = None,
) -> RiskReport:
    """Which streams (None: all) are at risk of losing changes.

    Logs are read in a few threads, those of `threads` if the process reports again and again. A source that is gone or
    damaged is a risk. A storage that does not answer, or not within `patience`, is unknown, for it may answer in a
    minute. It holds up no other. Raises StreamNotFound, StoreError.
    """
    streams = store.read(lambda connection: _streams(connection, names))
    now = store.clock()

    def assess(stream: Stream, health: StreamHealth) -> Assessment:
        return _assessment(stream, health, tables, now, limit)

    own = threads or OwnThreads("tidemark-risk-report", most=LOGS_AT_ONCE, each=READS_OF_ONE_TABLE)
    assessments = _assessments(streams, assess, own, patience)
    return RiskReport(
        at_risk=tuple(
            sorted((risk for risk, _ in assessments if risk), key=lambda risk: (risk.hours_left or 0.0, risk.stream))
        ),
        unknown=tuple(unknown for _, unknown in assessments if unknown),
    )


def _assessments(
    streams: Sequence[tuple[Stream, StreamHealth]],
    assess: Callable[[Stream, StreamHealth], Assessment],
    threads: OwnThreads,
    patience: timedelta,
) -> list[Assessment]:
    answers = [
        threads.submit(partial(assess, stream, health), about=[base.table.path for base in stream.bases])
        for stream, health in streams
    ]
    wait(answers, timeout=patience.total_seconds())
    problem = f"its lake has not answered for {patience.total_seconds():.0f} s"
    return [
        (None, (stream.name, problem)) if answer.cancel() or not answer.done() else _assessed(stream, answer)
        for (stream, _), answer in zip(streams, answers, strict=True)
    ]


def _assessed(stream: Stream, answer: Future[Assessment]) -> Assessment:
    error = answer.exception()
    return answer.result() if error is None else (None, (stream.name, why_unreadable(error)))


def _streams(connection: sa.Connection, names: Sequence[str] | None) -> list[tuple[Stream, StreamHealth]]:
    if names is None:
        found: Sequence[Stream] = [one for one in stored_streams.live(connection) if not is_of_a_view(one.name)]
    else:
        found = [stored_streams.find(connection, name) for name in names]
    how = counted.healths(connection)
    return [(stream, how.get(stream.uid, StreamHealth())) for stream in found]


def _assessment(stream: Stream, health: StreamHealth, tables: Tables, now: datetime, limit: Limit) -> Assessment:
    status: StreamStatus | None = None
    reason: str | None = None
    since: datetime | None = None
    unknown: tuple[str, str] | None = None
    try:
        status = status_of(stream, tables, now=now)
        reason = None if status.problem is None else str(status.problem)
        since = None if limit.unmoved is None else _waiting_since(stream, status, tables, now - limit.unmoved)
    except SourceError as error:
        reason = str(error)
    except (LakeError, OSError) as error:
        unknown = stream.name, str(error)
    risks = _risks(health, status, reason, since, now, limit)
    if not risks:
        return None, unknown
    return _stream_risk(stream, health, status, reason, risks, since, now), unknown


def _risks(
    health: StreamHealth,
    status: StreamStatus | None,
    reason: str | None,
    since: datetime | None,
    now: datetime,
    limit: Limit,
) -> tuple[Risk, ...]:
    nearly = status is not None and (status.stale(now) or status.time_left(now) < limit.time_left)
    found = {
        Risk.STALE: reason is not None or nearly,
        Risk.FAILING: limit.failures is not None and health.failures_in_row >= limit.failures,
        Risk.STUCK: since is not None and limit.unmoved is not None and now - since >= limit.unmoved,
    }
    return tuple(risk for risk, is_so in found.items() if is_so)


def _stream_risk(
    stream: Stream,
    health: StreamHealth,
    status: StreamStatus | None,
    reason: str | None,
    risks: Sequence[Risk],
    since: datetime | None,
    now: datetime,
) -> StreamRisk:
    failing = health.failures_in_row > 0
    kept = None if status is None else status.kept
    return StreamRisk(
        stream=stream.name,
        table=stream.source.name,
        stale_after=None if status is None else status.stale_after,
        hours_left=None if status is None else status.time_left(now).total_seconds() / 3600,
        behind=None if status is None else status.behind,
        reason=reason,
        staleness=Staleness.STALE if status is None else status.staleness(now),
        lost_version=None if status is None else status.lost_version,
        bytes_kept=None if kept is None else kept.bytes,
        bytes_past_retention=None if kept is None else kept.bytes_past_retention,
        risks=tuple(risk.value for risk in risks),
        failures_in_row=health.failures_in_row,
        last_error=f"{health.last_error_type}: {health.last_error}" if failing else None,
        unmoved_hours=None if since is None else (now - since).total_seconds() / 3600,
    )


def _waiting_since(stream: Stream, status: StreamStatus, tables: Tables, long_ago: datetime) -> datetime | None:
    """Since when changes have waited and the offset has not moved; None if none wait. Commits without changes are
    distinguished from others only if the oldest unread one is from before `long_ago`.
    """
    if status.problem is not None:
        return None
    if stream.initial_rows_pending:
        return stream.anchor
    if status.waiting_since is None:
        return None
    first = status.waiting_since
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
