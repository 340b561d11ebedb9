"""Capture: one bounded job, and what the store learns from it; the slot moves on last."""

from __future__ import annotations

from typing import Protocol

from tidemark.control.store import ControlStore
from tidemark.model.replication import By, LogPosition, Replication
from tidemark.model.replication_jobs import CaptureReport
from tidemark.model.transactions import TransactionKey
from tidemark.transactions.limits import DEFAULT_LIMITS, JobPlaces, Limits, RunJob

__all__ = ["SourceGate", "capture"]


class SourceGate(Protocol):
    """The source in the worker. Everything raises SourceUnreachable, SourceRefused, SourceDriverNotInstalled."""

    def current_position(self) -> LogPosition:
        """Where the log stands now: all that was committed before this call is before it."""
        ...

    def require_ours(self, replication: Replication) -> LogPosition:
        """Up to where the slot was moved. Raises SourceIsAnother, SlotLost, SlotForeign, SlotAhead, SlotBusy."""
        ...

    def has_changes(self, replication: Replication, until: LogPosition) -> bool:
        """Whether the slot has anything of the publication before `until`; moves nothing."""
        ...

    def advance(self, replication: Replication, to: LogPosition) -> None:
        """The slot lets go of what is before `to`; one that is there already stays."""
        ...


def capture(
    store: ControlStore,
    name: str,
    *,
    run: RunJob,
    places: JobPlaces,
    source: SourceGate,
    by: By,
    key: TransactionKey | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> CaptureReport | None:
    """Put into the event log what was committed up to now; None where there is nothing, or it is draining or paused."""
    raise NotImplementedError
