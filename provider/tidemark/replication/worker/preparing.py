"""Before a run: the source is looked at, what a replication needs in it is made, and its objects are taken up."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from tidemark.control.store import ControlStore
from tidemark.errors import ReplicationInvalid, SlotBusy, SourceLocked, StoreError, TidemarkError
from tidemark.failpoints import failpoint
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import TableRef
from tidemark.replication.model.replication import Actor, ObjectName, Replication, ReplicationState
from tidemark.replication.sources.open import Source
from tidemark.replication.worker import lifecycle
from tidemark.replication.worker.capture import OpenLog, require_slot
from tidemark.replication.worker.definitions import get_replication
from tidemark.replication.worker.discovery import Discovery, discover, postpone, rediscover
from tidemark.replication.worker.gaps import mark_unpublished
from tidemark.replication.worker.objects import Registered, register

__all__ = ["Prepared", "prepare"]

PATIENCE = timedelta(minutes=5)
"""How long a slot waits for transactions that are open in the source."""
LOCKED = "it could not be published, as others have it locked (look at pg_locks); the next run tries again."


@dataclass(frozen=True)
class Prepared:
    """The result of a look at the source. `made`: everything that was made or altered there. `warnings`, in words: what
    was asked for and is not replicated, or needs a look. `registered`: the result of the look at its catalog, None if
    nobody looked.
    """

    replication: Replication
    made: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    registered: Registered | None = None


def prepare(
    store: ControlStore,
    name: str,
    *,
    source: Source,
    targets: Callable[[ObjectName], TableRef],
    by: Actor,
    patience: timedelta = PATIENCE,
    open_log: OpenLog = DeltaLog.open,
) -> Prepared:
    """Start the replication if it has not started; publish what its selection names now, and take up new objects.

    Publication first, then the slot, then the objects: so the log has every event of an object that is registered. An
    object that has left the publication is marked for a backfill before it comes back. A second run finds all of it
    done. A replication that is draining is not prepared: what was captured is left to write. Once the replication has
    started, a table with a problem is unsupported until that is fixed, and the others continue. A table that stays
    locked is unsupported until the next run. Raises ReplicationInvalid with every problem of a first start, later with
    those of its own slot and publication. It names the fix for each; nothing was made then. Raises SlotBlocked,
    SlotLost, SlotForeign, SlotAhead, SourceIsAnother, SourceSetBack, SourceUnreachable, SourceRefused,
    ReplicationNotFound, ReplicationRefused.
    """
    replication = lifecycle.start(store, name, by=by)
    if replication.state is ReplicationState.DRAINING:
        return Prepared(replication)
    try:
        if replication.state is not ReplicationState.STARTING:
            with suppress(SlotBusy):  # another run captures, so the slot is there; nothing here needs it idle
                require_slot(store, replication, source, open_log=open_log)
        discovery = _discovered(store, source, replication, by)
        mark_unpublished(store, replication, source.published(replication), discovery.selected, by=by)
        failpoint("prepare.marked")
        discovery, made = _published(source, replication, discovery)
        failpoint("prepare.published")
        replication = _with_slot(store, source, replication, by, patience)
        failpoint("prepare.slot")
    except (StoreError, ReplicationInvalid, SlotBusy):
        raise
    except TidemarkError as error:
        lifecycle.settle(store, name, error=error, by=by)
        raise
    tables = source.seen(replication, [one for one in discovery.selected if one.unsupported is None])
    registered = register(store, name, discovery.everything, targets=targets, by=by, tables=tables)
    replication = get_replication(store, name)
    warnings = (*discovery.warnings, *source.alerts(replication))
    return Prepared(replication, made, warnings, registered)


def _discovered(store: ControlStore, source: Source, replication: Replication, by: Actor) -> Discovery:
    """A replication that cannot begin must be fixed first; a running one continues with the tables that have no
    problem. Raises ReplicationInvalid.
    """
    begins = replication.state is ReplicationState.STARTING
    discovery = discover(source, replication) if begins else rediscover(store, source, replication)
    if discovery.stops:
        listed = "\n".join(f"- {problem}" for problem in discovery.stops)
        lifecycle.invalid(store, replication.name, problems=listed, by=by)
        raise ReplicationInvalid(replication=replication.name, problems=f"\n{listed}")
    return discovery


def _published(source: Source, replication: Replication, discovery: Discovery) -> tuple[Discovery, tuple[str, ...]]:
    """The changes that were made, and the look without the tables that were put off because they stay locked. So a
    running replication captures the others, and its slot does not grow while those stay locked. Raises SourceLocked
    where it has not started.
    """
    try:
        return discovery, source.publish(replication, discovery.selected)
    except SourceLocked:
        if replication.state is ReplicationState.STARTING:
            raise
    locked = source.locked(replication, discovery.selected)
    unpublished = locked - source.published(replication)
    made = source.publish(replication, discovery.selected, leave=locked)
    return postpone(discovery, unpublished, LOCKED), made


def _with_slot(
    store: ControlStore, source: Source, replication: Replication, by: Actor, patience: timedelta
) -> Replication:
    """A start that died behind the slot finds it, and where it was moved to, which is where it was made."""
    if replication.state is not ReplicationState.STARTING:
        return replication
    position = source.make_slot(replication, patience=patience)
    return lifecycle.validated(store, replication.name, system_id=source.system_id(), position=position, by=by)
