"""Notifications about new files, and the channel from which they come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Announced", "Notification", "NotificationChannel"]


@dataclass(frozen=True)
class Notification:
    """A document of a channel. `handle`: by it the channel knows the document again."""

    text: str
    handle: str


@dataclass(frozen=True)
class Announced:
    """The content of a document. `files`: their names behind the location and prefix of a load. `others`: how many
    files or events are of other places or kinds. `problem`: why the document, or a part of it, is not understood.
    """

    files: tuple[str, ...] = ()
    others: int = 0
    problem: str | None = None


class NotificationChannel(Protocol):
    """Gives each document again until it is acknowledged. All calls raise NotificationsUnreachable, StorageUnreachable
    or StorageRefused.
    """

    def receive(self, most: int) -> Sequence[Notification]:
        """Documents that wait, at most this many. Other readers may not see them for a while."""

    def waiting(self, most: int = 1_000) -> int:
        """About how many documents wait. A channel may stop counting at `most`."""

    def hold(self, handles: Sequence[str]) -> None:
        """Keep other readers from the documents for longer."""

    @property
    def hold_seconds(self) -> float | None:
        """The time after which `hold` is due again; None: it is not needed."""

    def acknowledge(self, handles: Sequence[str]) -> None:
        """The documents are not needed any more. A second call changes nothing."""

    def refuse(self, handle: str) -> str | None:
        """Put aside a document that is not understood, and say what became of it. None: nothing did, since it may not
        be complete yet.
        """
