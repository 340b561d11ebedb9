"""The life of a replication: every act by name, refused where the state does not allow it, harmless when repeated."""

from __future__ import annotations

from collections.abc import Collection

from tidemark.control.store import ControlStore
from tidemark.errors import TidemarkError
from tidemark.model.replication import By, LogPosition, Replication

__all__ = [
    "drained",
    "failed",
    "failed_permanently",
    "invalid",
    "pause",
    "recover",
    "resume",
    "settle",
    "start",
    "validated",
    "went_well",
]


def start(store: ControlStore, name: str, *, by: By) -> Replication:
    """It is going to run: NOT_STARTED → STARTING. One that is starting, running, failed or draining stays as it is.

    The caller validates the source, makes publication and slot, and says `validated` or `invalid`. A start that died
    between is begun again; the slot that it made is found by its name. Raises ReplicationNotFound, ReplicationRefused
    for one that is paused, failed for good, or about to be dropped.
    """
    raise NotImplementedError


def validated(store: ControlStore, name: str, *, system_id: str, position: LogPosition, by: By) -> Replication:
    """STARTING → RUNNING: its slot gives every transaction that commits at or after `position`.

    One that runs already stays as it is, its position, too. Raises ReplicationNotFound, ReplicationRefused.
    """
    raise NotImplementedError


def invalid(store: ControlStore, name: str, *, problems: str, by: By) -> Replication:
    """It cannot start: STARTING → NOT_STARTED; RUNNING → FAILED for one that could. The problems are kept."""
    raise NotImplementedError


def pause(store: ControlStore, name: str, *, by: By, at_once: bool = False) -> Replication:
    """RUNNING or FAILED → DRAINING: nothing new is captured; what was captured is still written down.

    `at_once`: → PAUSED; what was captured is written down after `resume`. The slot stays and holds back the source's
    log. A second run changes nothing. Raises ReplicationNotFound, ReplicationRefused before the start.
    """
    raise NotImplementedError


def drained(store: ControlStore, name: str, *, by: By) -> Replication:
    """DRAINING → PAUSED, if every object that can go on has all that was captured; else it stays. Asked after each
    write-down of a draining replication.
    """
    raise NotImplementedError


def resume(store: ControlStore, name: str, *, by: By) -> Replication:
    """DRAINING or PAUSED → RUNNING, from where it was captured. Raises ReplicationNotFound, ReplicationRefused."""
    raise NotImplementedError


def failed(store: ControlStore, name: str, *, error: str, by: By) -> Replication:
    """A run has failed: RUNNING → FAILED. The next one tries again by itself; a draining or starting one keeps its
    state and the error.
    """
    raise NotImplementedError


def went_well(store: ControlStore, name: str, *, by: By) -> Replication:
    """A run has gone well: FAILED → RUNNING, and the error is forgotten."""
    raise NotImplementedError


def failed_permanently(store: ControlStore, name: str, *, error: str, by: By) -> Replication:
    """The log cannot be read on: → FAILED_PERMANENTLY, until `recover`. One that was starting is NOT_STARTED again."""
    raise NotImplementedError


def settle(store: ControlStore, name: str, *, error: TidemarkError, by: By) -> Replication:
    """What an error of a run makes of the replication: SlotLost, SlotAhead, SourceIsAnother → `failed_permanently`,
    all others → `failed`. `capture` does it by itself.
    """
    raise NotImplementedError


def recover(
    store: ControlStore,
    name: str,
    *,
    position: LogPosition,
    system_id: str,
    by: By,
    keep: Collection[str] = (),
    event_log: str | None = None,
) -> Replication:
    """FAILED_PERMANENTLY or FAILED → RUNNING, captured from `position` on, from which the slot gives everything.

    What was committed before it and not captured is lost, so every object is flagged for a backfill, and those that are
    backfilled by themselves are asked for one; but those that `keep` names go on, at the user's word. Another cluster,
    or a position behind the one that was captured, needs a new event log at `event_log`, and objects that are kept must
    have all that was captured. A second run with the same arguments changes nothing. Raises ReplicationNotFound,
    ReplicationRefused, ObjectNotFound.
    """
    raise NotImplementedError
