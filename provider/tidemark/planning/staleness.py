"""Until when a stream can be read: the forecast STALE_AFTER (R81), and Delta's way to write a duration."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

__all__ = ["FILE_RETENTION", "file_retention", "stale_after"]

FILE_RETENTION = "delta.deletedFileRetentionDuration"
_WEEK = timedelta(days=7)


def stale_after(anchor: datetime, setting: str | None) -> datetime:
    """Until then Delta keeps the files that a stream needs whose offset last moved at `anchor` (R81)."""
    return anchor + file_retention(setting)


def file_retention(setting: str | None) -> timedelta:
    """The time in Delta's `interval N unit` (weeks, days, hours, minutes, seconds); a week where nothing is said."""
    found = re.findall(r"(\d+)\s*(week|day|hour|minute|second)s?", (setting or "").lower())
    return sum((timedelta(**{f"{unit}s": int(count)}) for count, unit in found), timedelta()) or _WEEK
