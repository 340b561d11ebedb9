"""Dates and times, by the rules of the source system (seed 001, supported data types).

A whole number counts only as text: of seconds, milliseconds, microseconds or nanoseconds since 1970, by its size.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any

from tidemark.channels.model.columns import Kind
from tidemark.channels.model.rows import RowErrorKind
from tidemark.channels.planning.values.problem import ValueProblem, shown

__all__ = ["EPOCH", "to_date", "to_timestamp", "to_wall_clock"]

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall clock
_EPOCH_UTC = EPOCH.replace(tzinfo=UTC)
_SECONDS = 31_536_000_000  # smaller numbers are seconds; each further unit has 1,000 times that
_WHOLE = re.compile(r"[+-]?\d{1,20}", re.ASCII)
_MICROSECOND = timedelta(microseconds=1)
_FORM = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?"
    r" ?(Z|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)


def to_date(value: Any) -> date:
    """The date of a date, of a time on its own clock, or of a text."""
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    return _wall_of_text(value, Kind.DATE)[0].date()


def to_timestamp(value: Any, zone: tzinfo) -> int:
    """Microseconds since 1970 UTC. A time without an offset is one in `zone`."""
    if isinstance(value, datetime):
        wall, own = value, value.tzinfo
    elif isinstance(value, date):
        wall, own = datetime(value.year, value.month, value.day), None  # noqa: DTZ001 - `zone` follows
    else:
        wall, own = _wall_of_text(value, Kind.TIMESTAMP)
    try:
        micros = (wall.replace(tzinfo=own or zone) - _EPOCH_UTC) // _MICROSECOND
        _ = _EPOCH_UTC + micros * _MICROSECOND
    except OverflowError:
        raise _out_of_range(value) from None
    return micros


def to_wall_clock(value: Any) -> int:
    """Microseconds from 1970 to the wall clock of a time; its offset is dropped."""
    if isinstance(value, datetime):
        wall = value
    elif isinstance(value, date):
        wall = datetime(value.year, value.month, value.day)  # noqa: DTZ001 - a wall clock
    else:
        wall = _wall_of_text(value, Kind.TIMESTAMP_NTZ)[0]
    return (wall.replace(tzinfo=None) - EPOCH) // _MICROSECOND


def _wall_of_text(value: Any, kind: Kind) -> tuple[datetime, tzinfo | None]:
    """The wall clock in a text, and its zone if it names one."""
    if not isinstance(value, str):
        raise ValueProblem(RowErrorKind.WRONG_TYPE, f"{shown(value)} is not a {kind.value}; numbers count as text only")
    text = value.strip()
    if _WHOLE.fullmatch(text):
        return _of_count(int(text), value), UTC
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueProblem(RowErrorKind.INVALID_VALUE, f"{shown(value)} is not a {kind.value} in ISO 8601")
    year, month, day, hour, minute, second, fraction, offset = found.groups()
    micros = int((fraction or "0").ljust(6, "0")[:6])
    try:
        wall = datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), micros)  # noqa: DTZ001
        return wall, _zone(offset)
    except ValueError as error:
        raise ValueProblem(RowErrorKind.INVALID_VALUE, f"{shown(value)} is not a {kind.value}: {error}") from None


def _of_count(number: int, value: Any) -> datetime:
    """The time, UTC, of a number of units since 1970."""
    size = abs(number)
    scale = next((power for power in (0, 3, 6) if size < _SECONDS * 10**power), 9)
    micros = number * 10 ** (6 - scale) if scale <= 6 else number // 1000
    try:
        return EPOCH + micros * _MICROSECOND
    except OverflowError:
        raise _out_of_range(value) from None


def _zone(offset: str | None) -> tzinfo | None:
    if offset is None:
        return None
    if offset == "Z":
        return UTC
    sign = -1 if offset[0] == "-" else 1
    minutes = int(offset[1:3]) * 60 + int(offset[3:].lstrip(":") or 0)
    return timezone(sign * timedelta(minutes=minutes))


def _out_of_range(value: Any) -> ValueProblem:
    return ValueProblem(RowErrorKind.OUT_OF_RANGE, f"{shown(value)} is outside the years 1 to 9999")
