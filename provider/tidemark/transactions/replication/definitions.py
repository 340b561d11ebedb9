"""Replications as users define, alter and end them; what was captured and written stays as it is."""

from __future__ import annotations

from collections.abc import Callable

from tidemark.control.store import ControlStore
from tidemark.model.replication import By, Replication, ReplicationOptions, Selection, SourceKind

__all__ = [
    "alter_selection",
    "begin_drop",
    "create_replication",
    "drop_replication",
    "get_replication",
    "list_replications",
]


def create_replication(
    store: ControlStore,
    *,
    name: str,
    kind: SourceKind,
    source_conn_id: str,
    selection: Selection,
    options: ReplicationOptions,
    event_log: str | Callable[[str], str],
    by: By,
    if_not_exists: bool = False,
) -> Replication:
    """Define a replication; nothing is made in the source before its start.

    `event_log`: where its event log is to lie, or what tells that by the new replication's uid. `if_not_exists` keeps
    an existing one as it is, so a second run changes nothing. Raises ReplicationExists, InvalidArgument (a name, a
    pattern or an option that cannot be).
    """
    raise NotImplementedError


def get_replication(store: ControlStore, name: str) -> Replication:
    """The replication of that name, in any case. Raises ReplicationNotFound."""
    raise NotImplementedError


def list_replications(store: ControlStore) -> tuple[Replication, ...]:
    """Every replication that is not dropped, by name."""
    raise NotImplementedError


def alter_selection(store: ControlStore, name: str, selection: Selection, *, by: By) -> Replication:
    """Replicate what this selection names, from the next run's look at the source on. A second run changes nothing.

    Raises ReplicationNotFound, InvalidArgument.
    """
    raise NotImplementedError


def begin_drop(store: ControlStore, name: str, *, by: By, force: bool = False) -> Replication:
    """Let no new work begin, and return what must be dropped in the source: its `slot` and `publication`.

    The caller drops these, then calls `drop_replication`: so the store forgets a slot only when it is gone, and a crash
    between leaves a replication that can be dropped again. A second run finds it begun. Refused while a job of it may
    be alive (ReplicationRefused says until when), unless `force`. Raises ReplicationNotFound.
    """
    raise NotImplementedError


def drop_replication(store: ControlStore, name: str, *, by: By) -> Replication:
    """End the replication and its objects, and return what it was; its event log and its targets are the caller's.

    Refused before `begin_drop` (ReplicationRefused). A job that is under way finds nothing to report to any more.
    Raises ReplicationNotFound; so does a second run.
    """
    raise NotImplementedError
