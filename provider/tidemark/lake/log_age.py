"""The age of a table that remembers for a time, by its log."""

from __future__ import annotations

from datetime import datetime, timedelta

from tidemark.errors import LogIncomplete
from tidemark.lake.delta_log import DeltaLog

__all__ = ["forgotten_before"]

_SLACK = timedelta(days=1)  # for clocks of storages that are ahead


def forgotten_before(log: DeltaLog, now: datetime, kept: timedelta) -> datetime | None:
    """The time before which the table may have forgotten something. None: it is younger than that.

    A log that has lost its first commit counts as older.
    """
    before = now - kept + _SLACK
    try:
        return before if log.timestamp(0) < before else None
    except LogIncomplete:
        return before
