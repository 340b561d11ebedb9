"""Time zones of a session, by names that Arrow and Python know, too."""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

__all__ = ["arrow_zone", "zone_of"]

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2}))?")
_UTC = "UTC"


def zone_of(name: str) -> ZoneInfo | None:
    """The time zone; None for a name that Python does not know."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def arrow_zone(name: str) -> str:
    """The zone under a name that Arrow knows: Spark's offsets such as GMT+2 as +02:00. UTC for any other name, which
    shows the same moments.
    """
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        return f"{offset[1]}{int(offset[2]):02d}:{offset[3] or '00'}"
    return name if zone_of(name) is not None else _UTC
