"""Facts of a pipe's queue, and of the objects that a pipe needs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

__all__ = ["NeededObjects", "QueueFacts"]


@dataclass(frozen=True)
class QueueFacts:
    """A pipe's table of files at one version. `received`: the time of the newest file in the queue. `forwarded`: the
    newest file that a notification named. `pulled`: the last time when notifications were fetched. `outstanding`: the
    notifications that wait; None: nobody asked.
    """

    pending: int = 0
    oldest_pending: str | None = None
    oldest_pending_at: datetime | None = None
    last_ingested: str | None = None
    last_ingested_at: datetime | None = None
    received_at: datetime | None = None
    forwarded: str | None = None
    forwarded_at: datetime | None = None
    pulled_at: datetime | None = None
    outstanding: int | None = None


@dataclass(frozen=True)
class NeededObjects:
    """Whether the objects exist that a pipe's statement names. An object that is not named counts as existing."""

    stage: bool = True
    file_format: bool = True
    table: bool = True
