"""Points in a table's history, as users give them (R8)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from numbers import Integral
from typing import TYPE_CHECKING, Literal

from tidemark.errors import InvalidArgument

if TYPE_CHECKING:
    from tidemark.lake.delta_log import DeltaLog

__all__ = ["Offset", "Point", "Stream", "Timestamp", "Version", "as_group_start", "as_moment", "as_point", "version_at"]

_MOST_DIGITS = 18  # Delta counts versions in 64 bits
_FORMS = "a version number, or a time with a zone, as 2026-01-31T12:00:00Z"


@dataclass(frozen=True)
class Version:
    """A version of the table: `at` it, its changes lie behind the stream; `before` it, they come."""

    version: int


@dataclass(frozen=True)
class Timestamp:
    """A moment, with its zone."""

    when: datetime


@dataclass(frozen=True)
class Offset:
    """Seconds from now, zero or below (R8a)."""

    seconds: float


@dataclass(frozen=True)
class Stream:
    """The offset of another stream. With its own name and `or_replace` a stream is recreated and keeps its offset."""

    name: str


Point = Version | Timestamp | Offset | Stream | int | str | datetime
"""A whole number, or its digits, is a version; a time, or its ISO 8601 text, a moment with its zone."""


def as_point(argument: str, point: Point) -> Version | Timestamp | Offset | Stream:
    """The point that was meant. Raises InvalidArgument for what is none, and for a time without a zone."""
    if isinstance(point, Version | Timestamp | Offset | Stream):
        return point
    if isinstance(point, Integral) and not isinstance(point, bool):
        return Version(int(point))
    if isinstance(point, str) and point.strip().isdecimal() and len(point.strip()) <= _MOST_DIGITS:
        return Version(int(point))
    when = _time(point)
    if when is None or when.tzinfo is None:
        raise InvalidArgument(argument=argument, value=point, problem=f"give {_FORMS}")
    return Timestamp(when)


def as_moment(argument: str, when: datetime | str | None) -> datetime | None:
    """A time, or its ISO 8601 text with a zone. Raises InvalidArgument for a text that is none; anything else is for
    those who know what it is to be.
    """
    if not isinstance(when, str):
        return when
    moment = _time(when)
    if moment is None or moment.tzinfo is None:
        problem = "give a time with a zone, as 2026-01-31T12:00:00Z"
        raise InvalidArgument(argument=argument, value=when, problem=problem)
    return moment


def as_group_start(start: datetime | str) -> datetime | Literal["earliest", "now"]:
    """The start of a consumer group: `earliest`, `now`, or an argument of `as_moment`. Raises InvalidArgument."""
    named = start.strip().lower() if isinstance(start, str) else ""
    if named == "earliest":
        return "earliest"
    if named == "now":
        return "now"
    moment = as_moment("start", start)
    if moment is None:
        problem = "it is earliest, now, or a time with a zone"
        raise InvalidArgument(argument="start", value=start, problem=problem)
    return moment


def _time(point: object) -> datetime | None:
    if isinstance(point, datetime):
        return point
    try:
        return datetime.fromisoformat(point.strip()) if isinstance(point, str) else None
    except ValueError:
        return None


def version_at(log: DeltaLog, point: Version | Timestamp | Offset, *, now: datetime, before: bool) -> int:
    """The version of the point: `at` includes a commit at that moment, `before` does not (R8, R112).

    Raises InvalidArgument, VersionNotFound (R8f).
    """
    if isinstance(point, Version):
        return point.version - 1 if before else point.version
    when = _moment(point, now)
    return log.version_at(when - timedelta(microseconds=1) if before else when)


def _moment(point: Timestamp | Offset, now: datetime) -> datetime:
    if isinstance(point, Timestamp):
        if point.when.tzinfo is None:
            raise InvalidArgument(argument="at", value=point.when, problem="a time needs its zone")
        return point.when
    if point.seconds > 0:
        raise InvalidArgument(argument="at", value=point.seconds, problem="an offset from now is zero or below")
    return now + timedelta(seconds=point.seconds)
