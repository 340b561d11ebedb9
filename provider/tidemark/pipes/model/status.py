"""Facts of a pipe's queue, of its channel of notifications, and of the objects that a pipe needs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

__all__ = ["ChannelFacts", "NeededObjects", "QueueFacts"]


@dataclass(frozen=True)
class QueueFacts:
    """A pipe's table of files at one version. `received`: the time of the newest file in the queue. `forwarded`: the
    newest file that a notification named.
    """

    pending: int = 0
    oldest_pending: str | None = None
    oldest_pending_at: datetime | None = None
    last_ingested: str | None = None
    last_ingested_at: datetime | None = None
    received_at: datetime | None = None
    forwarded: str | None = None
    forwarded_at: datetime | None = None


@dataclass(frozen=True)
class ChannelFacts:
    """A channel of notifications at one moment. `outstanding`: about how many wait. It is None if the pipe has no
    channel, and if the channel cannot be reached, which is the `problem`.
    """

    outstanding: int | None = None
    problem: str | None = None


@dataclass(frozen=True)
class NeededObjects:
    """Whether the objects exist that a pipe's statement names. An object that is not named counts as existing."""

    stage: bool = True
    file_format: bool = True
    table: bool = True
