"""The age of a table by its log."""

from __future__ import annotations

from datetime import datetime

from tidemark.lake.delta_log import DeltaLog

__all__ = ["began_before"]


def began_before(log: DeltaLog, when: datetime) -> bool:
    """Whether the table's first commit is older than that time. A log that has lost it counts as older."""
    return log.earliest() > 0 or log.timestamp(0) < when
