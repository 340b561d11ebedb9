"""The life of a replication: every act by name, refused where the state does not allow it, harmless when repeated."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.errors import (
    ObjectNotFound,
    ReplicationError,
    ReplicationInvalid,
    ReplicationRefused,
    SlotAhead,
    SlotLost,
    SourceIsAnother,
    SourceSetBack,
    TidemarkError,
)
from tidemark.replication.model.replication import Actor, LogPosition, ReplicatedObject, Replication, ReplicationState
from tidemark.replication.planning.another_cluster import Elsewhere, elsewhere
from tidemark.replication.planning.lifecycle import (
    Act,
    ObjectAct,
    after,
    begins_new_log,
    has_all,
    holds_up_draining,
    leads_to,
    why_no_backfill,
)
from tidemark.replication.planning.positions import position_text
from tidemark.replication.planning.selection import is_backfilled
from tidemark.replication.store import object_writes, replicated_objects, replications
from tidemark.replication.store.object_writes import WriteKind
from tidemark.replication.store.replicated_objects import StoredObject
from tidemark.replication.worker.transitions import transition_object

__all__ = [
    "drained",
    "failed",
    "failed_permanently",
    "invalid",
    "let_drain",
    "pause",
    "recover",
    "recovery_acts",
    "require_recoverable",
    "resume",
    "settle",
    "start",
    "validated",
    "went_well",
]

_REASON = ReplicationError.__name__
LOST = "it was recovered from {position}: changes that were committed before it and not captured are lost"


def start(store: ControlStore, name: str, *, by: Actor) -> Replication:
    """It is going to run: NOT_STARTED → STARTING. A replication that is starting, running, failed or draining stays as
    it is.

    The caller validates the source, makes publication and slot, and says `validated` or `invalid`. A start that died
    between is begun again; the slot that it made is found by its name. Raises ReplicationNotFound, ReplicationRefused
    for one that is paused, failed for good, or about to be dropped.
    """

    def begin(connection: sa.Connection) -> Replication:
        found = replications.find(connection, name)
        if found.dropping:
            raise ReplicationRefused(replication=found.replication.name, problem="it is being dropped.")
        return _act(connection, store, found.replication, Act.START, by=by, error=found.replication.error)

    return store.write(begin)


def validated(store: ControlStore, name: str, *, system_id: str, position: LogPosition, by: Actor) -> Replication:
    """STARTING → RUNNING: its slot gives every transaction that commits at or after `position`.

    A replication that runs already stays as it is, its position, too. Raises ReplicationNotFound, ReplicationRefused.
    """

    def begin(connection: sa.Connection) -> Replication:
        found = replications.find(connection, name).replication
        to = after(found, Act.VALIDATED)
        if found.state is ReplicationState.STARTING:
            replications.place(
                connection,
                found,
                Act.VALIDATED.value,
                to,
                position=position,
                system_id=system_id,
                event_log=None,
                at=store.clock(),
                by=by,
            )
        return replications.by_uid(connection, found.uid).replication

    return store.write(begin)


def invalid(store: ControlStore, name: str, *, problems: str, by: Actor) -> Replication:
    """It cannot start: STARTING → NOT_STARTED; RUNNING → FAILED for one that could. The problems are kept."""
    return _move(store, name, Act.INVALID, by=by, error=problems, reason=ReplicationInvalid.__name__)


def pause(store: ControlStore, name: str, *, by: Actor, at_once: bool = False) -> Replication:
    """RUNNING or FAILED → DRAINING: nothing new is captured; what was captured is still applied.

    `at_once`: → PAUSED; what was captured is applied after `resume`. The slot stays and holds back the source's
    log. A second run changes nothing. Raises ReplicationNotFound, ReplicationRefused before the start.
    """
    return _move(store, name, _pausing(at_once), by=by)


def let_drain(store: ControlStore, name: str, *, by: Actor, at_once: bool = False) -> Replication:
    """`pause`, and `drained` with it: → PAUSED where nothing is left to apply. A second run changes nothing.

    Raises ReplicationNotFound, ReplicationRefused before the start.
    """

    def drain(connection: sa.Connection) -> Replication:
        found = replications.find(connection, name).replication
        return _drained(connection, store, _act(connection, store, found, _pausing(at_once), by=by), by)

    return store.write(drain)


def drained(store: ControlStore, name: str, *, by: Actor) -> Replication:
    """DRAINING → PAUSED, if every object that can continue has all that was captured; else it stays. Asked after each
    apply of a draining replication.
    """
    return store.write(
        lambda connection: _drained(connection, store, replications.find(connection, name).replication, by)
    )


def resume(store: ControlStore, name: str, *, by: Actor) -> Replication:
    """DRAINING or PAUSED → RUNNING, from where it was captured. Raises ReplicationNotFound, ReplicationRefused."""
    return _move(store, name, Act.RESUME, by=by)


def failed(store: ControlStore, name: str, *, error: str, by: Actor, reason: str = _REASON) -> Replication:
    """A run has failed: RUNNING → FAILED. The next one tries again by itself; a draining or starting one keeps its
    state and the error. A replication that failed for good keeps the error that it failed by. `reason`: the name of
    the error's class, for the list of errors.
    """

    def fail(connection: sa.Connection) -> Replication:
        found = replications.find(connection, name).replication
        if found.state is ReplicationState.FAILED_PERMANENTLY:
            return found
        return _act(connection, store, found, Act.FAILED, by=by, error=error, reason=reason)

    return store.write(fail)


def went_well(store: ControlStore, name: str, *, by: Actor) -> Replication:
    """A run has gone well: FAILED → RUNNING, and the error is forgotten; not that of one that failed for good."""

    def heal(connection: sa.Connection) -> Replication:
        found = replications.find(connection, name).replication
        if found.state is ReplicationState.FAILED_PERMANENTLY:
            return found
        return _act(connection, store, found, Act.WENT_WELL, by=by)

    return store.write(heal)


def failed_permanently(store: ControlStore, name: str, *, error: str, by: Actor, reason: str = _REASON) -> Replication:
    """The log cannot be read on: → FAILED_PERMANENTLY, until `recover`. A replication that was starting is NOT_STARTED
    again.
    """
    return _move(store, name, Act.FAILED_PERMANENTLY, by=by, error=error, reason=reason)


def settle(store: ControlStore, name: str, *, error: TidemarkError, by: Actor) -> Replication:
    """The move that an error of a run causes: SlotLost, SlotAhead, SourceIsAnother, SourceSetBack →
    `failed_permanently`, all others → `failed`. `capture` does it by itself.
    """
    for_good = isinstance(error, SlotLost | SlotAhead | SourceIsAnother | SourceSetBack)
    act = failed_permanently if for_good else failed
    return act(store, name, error=str(error), by=by, reason=type(error).__name__)


def require_recoverable(store: ControlStore, name: str, *, keep: Collection[str] = (), anew: bool = False) -> None:
    """`recover` would not be refused; `anew`: where it begins a new event log. Raises what it does."""

    def look(connection: sa.Connection) -> None:
        stored = replications.find(connection, name)
        found = stored.replication
        if stored.dropping:
            raise ReplicationRefused(replication=found.name, problem="it is being dropped.")
        if leads_to(found.state, Act.RECOVER) is None:
            problem = f"it is {found.state}; only one that failed is recovered."
            raise ReplicationRefused(replication=found.name, problem=problem)
        _kept(found, replicated_objects.of_replication(connection, found.uid), keep, anew=anew)

    store.read(look)


def recover(
    store: ControlStore,
    name: str,
    *,
    position: LogPosition,
    system_id: str,
    by: Actor,
    keep: Collection[str] = (),
    event_log: str | None = None,
    there: Elsewhere | None = None,
) -> Replication:
    """FAILED_PERMANENTLY or FAILED → RUNNING, captured from `position` on, from which the slot gives everything.

    Changes that were committed before it and not captured are lost, so every object needs a backfill. Objects that are
    backfilled by themselves get one. But the objects that `keep` names continue, at the user's word. Another cluster,
    or a position behind the captured one, needs a new event log at `event_log`. Objects that are kept must then have
    all that was captured. Objects of another cluster are known by their names, as ids there say nothing: `there` says
    what is known of it. A second run with the same position changes nothing. Raises ReplicationNotFound,
    ReplicationRefused, ObjectNotFound.
    """

    def begin(connection: sa.Connection) -> Replication:
        found = replications.find(connection, name).replication
        if found.state is ReplicationState.RUNNING and (found.captured, found.system_id) == (position, system_id):
            return found
        to = after(found, Act.RECOVER)
        anew = begins_new_log(found, position=position, system_id=system_id)
        objects = replicated_objects.of_replication(connection, found.uid)
        kept = _kept(found, objects, keep, anew=anew)
        if anew and event_log in (None, found.event_log):
            problem = (
                "its event log cannot take positions of this source: they are of another cluster, or before those that "
                "it has. Give it a new one (event_log)."
            )
            raise ReplicationRefused(replication=found.name, problem=problem)
        at = store.clock()
        replications.place(
            connection,
            found,
            Act.RECOVER.value,
            to,
            position=position,
            system_id=system_id,
            event_log=event_log if anew else None,
            at=at,
            by=by,
        )
        if found.system_id not in (None, system_id):
            _know_again(connection, found, objects, there)
        for one in objects:
            _begin_again(
                connection, store, found, one, position, kept=_goes_on(connection, one, kept), anew=anew, by=by
            )
        return replications.by_uid(connection, found.uid).replication

    return store.write(begin)


def recovery_acts(
    store: ControlStore, name: str, *, keep: Collection[str] = (), anew: bool = False
) -> Mapping[str, ObjectAct | None]:
    """The act of `recover` on each object, by name: RESTART requests a backfill, STOP only says that it needs one.
    None: the object continues, or stays as it cannot be backfilled. Raises ReplicationNotFound, ObjectNotFound,
    ReplicationRefused.
    """

    def look(connection: sa.Connection) -> Mapping[str, ObjectAct | None]:
        found = replications.find(connection, name).replication
        objects = replicated_objects.of_replication(connection, found.uid)
        kept = _kept(found, objects, keep, anew=anew)
        return {
            one.object.name.text: _recovery_act(found, one.object, kept=_goes_on(connection, one, kept))
            for one in objects
        }

    return store.read(look)


def _recovery_act(replication: Replication, one: ReplicatedObject, *, kept: bool) -> ObjectAct | None:
    if kept or why_no_backfill(one) is not None:
        return None
    return ObjectAct.RESTART if is_backfilled(replication.options, one.name) else ObjectAct.STOP


def _kept(
    replication: Replication, objects: Collection[StoredObject], keep: Collection[str], *, anew: bool
) -> set[str]:
    """Uids of the objects that continue. Raises ObjectNotFound, ReplicationRefused."""
    by_name = {one.object.name.text: one.object for one in objects}
    for name in keep:
        if name not in by_name:
            known = ", ".join(by_name) or "none"
            raise ObjectNotFound(replication=replication.name, object=name, known=known)
        if anew and not has_all(by_name[name], replication.captured):
            problem = (
                f"{name} cannot continue as it is: some captured events are not applied yet, and the new event log "
                "lacks them. Apply them first, or let it be backfilled."
            )
            raise ReplicationRefused(replication=replication.name, problem=problem)
    return {by_name[name].uid for name in keep}


def _pausing(at_once: bool) -> Act:
    return Act.PAUSE_AT_ONCE if at_once else Act.PAUSE


def _drained(connection: sa.Connection, store: ControlStore, found: Replication, by: Actor) -> Replication:
    objects = replicated_objects.of_replication(connection, found.uid)
    draining = found.state is ReplicationState.DRAINING
    if draining and any(_is_waited_for(connection, store, found, one) for one in objects):
        return found
    return _act(connection, store, found, Act.DRAINED, by=by, error=found.error)


def _is_waited_for(
    connection: sa.Connection, store: ControlStore, replication: Replication, stored: StoredObject
) -> bool:
    write = object_writes.open_one(connection, stored.object.uid)
    copying = write is not None and write.kind is WriteKind.BACKFILL
    there = write is not None and write.ended_at is None and write.lease_until > store.clock()
    return holds_up_draining(stored.object, replication.captured, copying=copying, there=there)


def _know_again(
    connection: sa.Connection, replication: Replication, objects: Collection[StoredObject], there: Elsewhere | None
) -> None:
    """Objects and excluded tables by their ids of another cluster."""
    there = there or elsewhere((), (), ())
    for one in objects:
        uid = one.object.uid
        held, alike = there.held.get(uid, ()), uid in there.alike
        replicated_objects.known_as(connection, uid, there.ids.get(uid, ""), held, alike=alike)
    replications.record_held_tables(connection, replication.uid, there.tables)


def _goes_on(connection: sa.Connection, stored: StoredObject, kept: Collection[str]) -> bool:
    """A backfill that is open may be exact at a position in the gap, so its object never continues."""
    return stored.object.uid in kept and not object_writes.is_copied(connection, stored.object.uid)


def _begin_again(
    connection: sa.Connection,
    store: ControlStore,
    replication: Replication,
    stored: StoredObject,
    position: LogPosition,
    *,
    kept: bool,
    anew: bool,
    by: Actor,
) -> None:
    """The effect of a recovery on one object. A write that is open is given up: nothing that it found out counts."""
    one = stored.object
    act = _recovery_act(replication, one, kept=kept)
    if act is not None:
        transition_object(
            connection,
            store,
            one,
            act,
            by=by,
            give_up=True,
            needs_backfill=LOST.format(position=position_text(position)),
            called=Act.RECOVER.value,
        )
    if anew:
        replicated_objects.begin_at(connection, one.uid, position if kept else None, new_log=True)


def _move(
    store: ControlStore, name: str, act: Act, *, by: Actor, error: str | None = None, reason: str | None = None
) -> Replication:
    def move(connection: sa.Connection) -> Replication:
        found = replications.find(connection, name).replication
        return _act(connection, store, found, act, by=by, error=error, reason=reason)

    return store.write(move)


def _act(
    connection: sa.Connection,
    store: ControlStore,
    found: Replication,
    act: Act,
    *,
    by: Actor,
    error: str | None = None,
    reason: str | None = None,
) -> Replication:
    """`reason`: `error` was met now. Raises ReplicationRefused."""
    shown, to, at = None if error is None else store.hide(error), after(found, act), store.clock()
    replications.transition(connection, found, act.value, to, error=shown, at=at, by=by, reason=reason)
    return replications.by_uid(connection, found.uid).replication
