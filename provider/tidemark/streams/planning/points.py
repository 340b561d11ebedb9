"""Points in a table's history, as users give them (R8)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from numbers import Integral, Real

from tidemark.errors import InvalidArgument
from tidemark.model.foreign_json import whole_number

__all__ = [
    "Offset",
    "Point",
    "Statement",
    "Stream",
    "Timestamp",
    "Version",
    "as_point",
    "moment_of",
    "time_of",
    "version_or_time",
]

_FORMS = "a version number, or a time with a zone, as 2026-01-31T12:00:00Z"


@dataclass(frozen=True)
class Version:
    """A version of the table. The stream begins with its changes if it is `before` it, and behind them if `at` it."""

    version: int


@dataclass(frozen=True)
class Timestamp:
    """A time with its zone."""

    when: datetime


@dataclass(frozen=True)
class Offset:
    """Seconds from now, zero or below (R8a)."""

    seconds: float


@dataclass(frozen=True)
class Stream:
    """The offset of another stream. With its own name and `or_replace` a stream is recreated and keeps its offset."""

    name: str


@dataclass(frozen=True)
class Statement:
    """The commits of a statement: `at` its last one, `before` its first (R8c). `name`: the `userMetadata` or the
    `txnId` that these commits have.
    """

    name: str


Point = Version | Timestamp | Offset | Stream | Statement | int | str | datetime
"""A whole number, or its digits, is a version; a time, or its ISO 8601 text, a moment with its zone."""


def as_point(argument: str, point: Point) -> Version | Timestamp | Offset | Stream | Statement:
    """The point that was meant, even if its class was given a text for a number or a time. Raises InvalidArgument for
    anything else, and for a time without a zone.
    """
    if isinstance(point, Stream | Statement):
        if not isinstance(point.name, str):
            raise InvalidArgument(argument=argument, value=point, problem="its name must be a text")
        return point
    if isinstance(point, Offset):
        if isinstance(point.seconds, bool) or not isinstance(point.seconds, Real):
            raise InvalidArgument(argument=argument, value=point, problem="its seconds must be a number")
        return point
    given = point.version if isinstance(point, Version) else point.when if isinstance(point, Timestamp) else point
    plain = version_or_time(argument, given)
    found = Timestamp(plain) if isinstance(plain, datetime) else Version(plain)
    if isinstance(point, Version | Timestamp) and type(found) is not type(point):
        raise InvalidArgument(argument=argument, value=point, problem=f"give {_FORMS}")
    return found


def version_or_time(argument: str, value: int | str | datetime) -> int | datetime:
    """A version of a table (a number or its digits), or a time with a zone (ISO 8601). Raises InvalidArgument."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    version = whole_number(value.strip()) if isinstance(value, str) else None
    if version is not None:
        return version
    when = time_of(value)
    if when is None or when.tzinfo is None:
        raise InvalidArgument(argument=argument, value=value, problem=f"give {_FORMS}")
    return when


def time_of(value: object) -> datetime | None:
    """The time that was given, or that an ISO 8601 text has; None for anything else."""
    if isinstance(value, datetime):
        return value
    try:
        return datetime.fromisoformat(value.strip()) if isinstance(value, str) else None
    except ValueError:
        return None


def moment_of(point: Timestamp | Offset, now: datetime) -> datetime:
    """The moment of a point in time. Raises InvalidArgument for a time without a zone, and for an offset that leads
    into the future or behind the first year.
    """
    if isinstance(point, Timestamp):
        if point.when.tzinfo is None:
            raise InvalidArgument(argument="at", value=point.when, problem="a time needs its zone")
        return point.when
    if not point.seconds <= 0:
        raise InvalidArgument(argument="at", value=point.seconds, problem="an offset from now is zero or below")
    try:
        return now + timedelta(seconds=point.seconds)
    except OverflowError:
        problem = "no year is that long ago"
        raise InvalidArgument(argument="at", value=point.seconds, problem=problem) from None
