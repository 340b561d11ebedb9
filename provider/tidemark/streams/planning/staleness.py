"""Until when a stream can be read: the forecast STALE_AFTER (R80, R81), and Delta's way to write a duration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from tidemark.model.foreign_json import foreign_value

__all__ = [
    "DEFAULT_EXTENSION",
    "EXTENSION",
    "FILE_RETENTION",
    "LOG_RETENTION",
    "OWN_RETENTION",
    "Retention",
    "Staleness",
    "Stretched",
    "file_retention",
    "interval",
    "retention_of",
    "stretched_from",
]

FILE_RETENTION = "delta.deletedFileRetentionDuration"
LOG_RETENTION = "delta.logRetentionDuration"
EXTENSION = "tidemark.maxDataExtension"  # how long an unread stream may hold back VACUUM; set by whoever keeps to it
OWN_RETENTION = "tidemark.ownRetention"  # JSON of the Stretched: what Delta's two properties were, and now are
DEFAULT_EXTENSION = timedelta(days=14)
DELTA_KEEPS = {FILE_RETENTION: timedelta(days=7), LOG_RETENTION: timedelta(days=30)}
FOR_EVER = timedelta(days=365_000)
_PART = re.compile(r"(\d+)\s*(week|day|hour|minute|second|millisecond|microsecond)s?\b")


class Staleness(StrEnum):
    """The state of a stream's history (R87)."""

    FRESH = "fresh"  # it can be read, and will be until STALE_AFTER
    FORECAST = "forecast"  # STALE_AFTER has passed: nobody keeps its files any more, but what it needs is still there
    STALE = "stale"  # it cannot be read any more


@dataclass(frozen=True)
class Stretched:
    """A property of Delta's that is stretched for streams: what it was (None: not set), and what it was set to."""

    own: str | None
    now: str


@dataclass(frozen=True)
class Retention:
    """How long a table keeps removed files and commits by itself, and how long streams may stretch that.

    `extension` is None where nobody has promised to keep to one: then a stream has what Delta keeps.
    """

    files: timedelta
    log: timedelta
    extension: timedelta | None = None

    @property
    def extended(self) -> timedelta:
        """E (R80): the longer of both; without an extension, what Delta keeps of files and of the log."""
        return min(self.files, self.log) if self.extension is None else max(self.files, self.extension)

    def stale_after(self, anchor: datetime) -> datetime:
        """STALE_AFTER of a stream whose offset last moved at `anchor` (R81)."""
        return anchor + self.extended


def retention_of(configuration: Mapping[str, str]) -> Retention:
    """The retention by a table's properties; those that are stretched count as what they were."""
    own = {name: configuration.get(name) for name in (FILE_RETENTION, LOG_RETENTION)}
    own |= {name: one.own for name, one in stretched_from(configuration).items()}
    said = configuration.get(EXTENSION)
    return Retention(
        files=interval(own[FILE_RETENTION], DELTA_KEEPS[FILE_RETENTION]),
        log=interval(own[LOG_RETENTION], DELTA_KEEPS[LOG_RETENTION]),
        extension=None if said is None else interval(said, DEFAULT_EXTENSION),
    )


def stretched_from(configuration: Mapping[str, str]) -> dict[str, Stretched]:
    """Which of Delta's properties are stretched. A property that somebody has set to something else since is theirs
    again.
    """
    note = configuration.get(OWN_RETENTION)
    kept = {name: foreign_value(Stretched, note, name) for name in DELTA_KEEPS}  # not written by us: it says nothing
    return {name: one for name, one in kept.items() if one is not None and configuration.get(name) == one.now}


def file_retention(configuration: Mapping[str, str]) -> timedelta:
    """How long Delta's VACUUM and checkpoints keep what was removed, as the properties are now."""
    return interval(configuration.get(FILE_RETENTION), DELTA_KEEPS[FILE_RETENTION])


def interval(text: str | None, default: timedelta) -> timedelta:
    """The time in Delta's `interval N unit` (weeks to microseconds); `default` where no time is said."""
    found = _PART.findall((text or "").lower())
    try:
        total = sum((timedelta(**{f"{unit}s": int(count)}) for count, unit in found), timedelta())
    except (OverflowError, ValueError):  # more digits than a number may have
        return FOR_EVER
    return min(total, FOR_EVER) if found else default
