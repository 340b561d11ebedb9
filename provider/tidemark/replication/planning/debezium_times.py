"""Debezium's dates and times as canonical texts. A value outside the years 1 to 9999 keeps its number, or is
infinity. Neither fits a column of Delta.
"""

from __future__ import annotations

import datetime as dt

__all__ = ["date_text", "duration_text", "moment_text", "zoned_text"]

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY = _EPOCH.toordinal()
_LAST_DAY = dt.date.max.toordinal()
_INFINITE = {9223372036825200000: "infinity", -9223372036832400000: "-infinity"}  # PostgreSQL's, in microseconds


def date_text(days: int) -> str:
    """Days since 1970."""
    ordinal = _EPOCH_DAY + days
    return dt.date.fromordinal(ordinal).isoformat() if 1 <= ordinal <= _LAST_DAY else f"{days} days since 1970"


def moment_text(nanoseconds: int) -> str:
    """Nanoseconds since 1970, of no zone. Digits behind the microseconds are kept if there are any."""
    micros, rest = divmod(nanoseconds, 1000)
    if micros in _INFINITE:
        return _INFINITE[micros]
    try:
        moment = _EPOCH + dt.timedelta(microseconds=micros)
    except OverflowError:
        return f"{micros} us since 1970"
    return moment.replace(tzinfo=None).isoformat(" ", "microseconds") + (f"{rest:03d}" if rest else "")


def zoned_text(text: str) -> str:
    """`2024-01-02T03:04:05.123456+02:00` in UTC; a text that is no moment of a year with four digits stays."""
    try:
        moment = dt.datetime.fromisoformat(text)
        utc = moment.astimezone(dt.UTC) if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    except (ValueError, OverflowError):
        return text
    return utc.replace(tzinfo=None).isoformat(" ", "microseconds") + "+00"


def duration_text(nanoseconds: int) -> str:
    """A time of a day, or a TIME of MySQL, which may be negative or longer than a day: `-838:59:59`."""
    sign, value = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    seconds, fraction = divmod(value, 1_000_000_000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    digits = f"{fraction:09d}".rstrip("0")
    return f"{sign}{hours:02d}:{minute:02d}:{second:02d}" + (f".{digits}" if digits else "")
