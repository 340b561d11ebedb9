"""How a replication stands: its objects, how far behind they are, and what somebody should look at."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.control.store import ControlStore
from tidemark.model.replication import Replicated, Replication, ReplicationMove

__all__ = ["ObjectStatus", "ReplicationStatus", "describe", "history"]


@dataclass(frozen=True)
class ObjectStatus:
    """`lag_seconds`: how old the state of the source is that the target shows; None until it shows one.

    `behind`: events were captured that are not written down.
    """

    object: Replicated
    lag_seconds: float | None
    behind: bool


@dataclass(frozen=True)
class ReplicationStatus:
    """`lag_seconds`: since when nothing was captured; None before the start. `lag_bytes`: of the source's log behind
    the last capture when it ended. `alerts`: in words, worst first.
    """

    replication: Replication
    objects: tuple[ObjectStatus, ...]
    lag_seconds: float | None
    lag_bytes: int
    alerts: tuple[str, ...]


def describe(store: ControlStore, name: str) -> ReplicationStatus:
    """As the store knows it, by its clock. Raises ReplicationNotFound."""
    raise NotImplementedError


def history(store: ControlStore, name: str, *, limit: int = 100) -> tuple[ReplicationMove, ...]:
    """The newest moves of the replication and its objects, newest first. Raises ReplicationNotFound."""
    raise NotImplementedError
