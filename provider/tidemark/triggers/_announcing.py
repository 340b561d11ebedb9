"""When a stream's data is announced, and when again: a decision on what was seen and what was announced last (R126)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidemark.streams.worker.observation import Observation

__all__ = ["Announced", "Intervals", "Reason", "due", "payload_of"]

_NEW_WATCHER = timedelta(minutes=1)  # two DAG files that disagree about a watcher make new ones all the time


class Reason(StrEnum):
    """Why a stream is announced."""

    DATA = "data"  # it has data that was not announced at this offset
    AGAIN = "again"  # what was announced has not been consumed, and nobody is at it
    KEEP_FRESH = "keep_fresh"  # nothing to deliver, but its offset has stood still for long (R126, R81)


@dataclass(frozen=True)
class Intervals:
    """`renew_after`: between announcements of the same; `keep_fresh_after`: for a stream whose offset does not move."""

    renew_after: timedelta
    keep_fresh_after: timedelta


@dataclass(frozen=True)
class Announced:
    """The last announcement. `watch` is the watcher's id: a DAG that is resumed has a new one."""

    uid: str
    offset: int
    initial_rows: bool
    has_data: bool
    head: int
    at: datetime
    watch: str

    @classmethod
    def of(cls, observation: Observation, *, at: datetime, watch: str) -> Announced:
        """The announcement for this observation."""
        stream = observation.stream
        return cls(
            stream.uid,
            stream.offset.version,
            stream.initial_rows_pending,
            observation.has_data,
            observation.head,
            at,
            watch,
        )

    def to_plain(self) -> dict[str, Any]:
        """The form in which Airflow keeps it."""
        return {**asdict(self), "at": self.at.isoformat()}

    @classmethod
    def from_plain(cls, plain: Any) -> Announced | None:
        """The inverse; None for the text of another release, so that the stream is announced again."""
        try:
            found = cls(**{**plain, "at": datetime.fromisoformat(plain["at"])})
        except (TypeError, KeyError, ValueError):
            return None
        return found if found.at.tzinfo is not None else None

    def speaks_of(self, observation: Observation) -> bool:
        """Whether the stream has the same offset as then: nothing was consumed since, and there is data as then."""
        stream = observation.stream
        return (self.uid, self.offset, self.initial_rows, self.has_data) == (
            stream.uid,
            stream.offset.version,
            stream.initial_rows_pending,
            observation.has_data,
        )


def due(
    observation: Observation, last: Announced | None, *, now: datetime, watch: str, every: Intervals
) -> Reason | None:
    """Why the stream is to be announced now; None if it is not.

    Data is announced once for each offset. The run that was woken reads newer versions, too, or they are announced when
    the offset has moved. A new watcher (a resumed DAG) announces existing data, once in a minute.
    """
    if not observation.has_data:
        since = observation.stream.anchor
        if last is not None and last.uid == observation.stream.uid:
            since = max(since, last.at)
        return Reason.KEEP_FRESH if now - since >= every.keep_fresh_after else None
    if last is None or not last.speaks_of(observation):
        return Reason.DATA
    if last.watch != watch and now - last.at >= _NEW_WATCHER:
        return Reason.DATA
    return Reason.AGAIN if now - last.at >= every.renew_after else None


def payload_of(observation: Observation, reason: Reason, *, now: datetime) -> Mapping[str, Any]:
    """The event's hint: {stream, source, offset, head, behind, lag, initial_rows, reason}."""
    stream = observation.stream
    return {
        "stream": stream.name,
        "source": stream.source.name,
        "offset": stream.offset.version,
        "head": observation.head,
        "behind": observation.behind,
        "lag": observation.lag(now),
        "initial_rows": stream.initial_rows_pending,
        "reason": reason.value,
    }
