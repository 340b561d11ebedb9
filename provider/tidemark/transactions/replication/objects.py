"""The objects of a replication: found in the source, asked to be backfilled, stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tidemark.control.store import ControlStore
from tidemark.model.replication import By, FoundObject, ObjectName, Replicated
from tidemark.model.streams import TableRef

__all__ = ["Registered", "ask_backfill", "get_object", "objects_of", "register", "stop_backfill", "to_work_at"]


@dataclass(frozen=True)
class Registered:
    """What a look at the source has changed, by `schema.table`. `renamed`: object → the name that it has there now.

    `objects`: all there are now, by name. `taken`: names that were found, but belong to an object that was renamed.
    """

    objects: tuple[Replicated, ...]
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    recreated: tuple[str, ...] = ()
    deselected: tuple[str, ...] = ()
    selected_again: tuple[str, ...] = ()
    taken: tuple[str, ...] = ()
    renamed: Mapping[str, str] | None = None


def register(
    store: ControlStore,
    name: str,
    found: Sequence[FoundObject],
    *,
    targets: Callable[[ObjectName], TableRef],
    by: By,
) -> Registered:
    """Take up what the catalog of the source has now: `found` is everything there, also what is not selected.

    The selection of the replication is applied here. New objects are PENDING, or NOT_STARTED where they are not
    backfilled by themselves: those begin with what is captured from now on. `targets` tells where a new one is written.
    To be called after the tables are in the publication. A second run changes nothing. Raises ReplicationNotFound,
    ReplicationRefused (two objects for one target), ObjectNotReplicable (a key column is excluded).
    """
    raise NotImplementedError


def objects_of(store: ControlStore, name: str) -> tuple[Replicated, ...]:
    """Every object of the replication, by name. Raises ReplicationNotFound."""
    raise NotImplementedError


def get_object(store: ControlStore, name: str, object_name: str) -> Replicated:
    """The object `schema.table`. Raises ReplicationNotFound, ObjectNotFound."""
    raise NotImplementedError


def to_work_at(store: ControlStore, name: str) -> tuple[Replicated, ...]:
    """The objects that a run has something to do for: to be backfilled, or to be written down. By name; () where the
    replication is not started, paused, or failed for good.
    """
    raise NotImplementedError


def ask_backfill(
    store: ControlStore, name: str, names: Sequence[str], *, by: By, restart: bool = False
) -> tuple[Replicated, ...]:
    """The next run begins a backfill of these objects: → PENDING; one that is PENDING already stays so.

    One that is ACTIVE stays so, too, unless `restart`: then it is PENDING again, and what the old one answers counts
    for nothing once the next has begun. Names are `schema.table`. Raises ReplicationNotFound, ObjectNotFound,
    ObjectNotReplicable for one that is unsupported, gone or not selected.
    """
    raise NotImplementedError


def stop_backfill(store: ControlStore, name: str, names: Sequence[str], *, by: By) -> tuple[Replicated, ...]:
    """PENDING or ACTIVE → STOPPED; others stay as they are. The worker of an active one ends its job.

    Raises ReplicationNotFound, ObjectNotFound.
    """
    raise NotImplementedError
