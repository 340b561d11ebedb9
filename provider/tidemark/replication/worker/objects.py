"""The objects of a replication: found in the source, backfills of them requested and stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.errors import ObjectNotReplicable, ReplicationRefused
from tidemark.model.source_address import SourceKind
from tidemark.model.streams import TableRef
from tidemark.replication.model.catalog import HeldColumn, SeenTable
from tidemark.replication.model.replication import (
    Actor,
    FoundObject,
    HeldTable,
    ObjectName,
    ObjectState,
    ReplicatedObject,
    Replication,
)
from tidemark.replication.planning.another_cluster import LastSeen
from tidemark.replication.planning.lifecycle import (
    ObjectAct,
    applies,
    backfills,
    has_all,
    object_leads_to,
    why_no_backfill,
    why_not_applied,
)
from tidemark.replication.store import replicated_objects, replications
from tidemark.replication.store.replicated_objects import StoredObject
from tidemark.replication.worker.register import register_objects
from tidemark.replication.worker.transitions import transition_object

__all__ = [
    "Registered",
    "Remembered",
    "can_be_backfilled",
    "get_object",
    "is_due",
    "objects_named",
    "objects_of",
    "register",
    "remembered",
    "request_backfill",
    "stop_backfill",
    "to_apply",
    "to_work_at",
    "work_of",
]

_NO_COPY = {  # of sources that others have landed: how rows come anew
    SourceKind.DEBEZIUM: (
        "Tidemark reads envelopes, and copies no table. Have Debezium take a snapshot of it, by a signal"
        " (execute-snapshot): its rows come as envelopes."
    ),
    SourceKind.EVENT_FILES: (
        "Tidemark reads event files, and copies no table. Have Datastream backfill the object: its rows come as files."
    ),
}


@dataclass(frozen=True)
class Registered:
    """The changes that a look at the source has made, by `schema.table`. `renamed`: object → the name that it has there
    now.

    `objects`: all there are now, by name. `taken`: names that were found, but belong to an object that was renamed.
    """

    objects: tuple[ReplicatedObject, ...]
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    recreated: tuple[str, ...] = ()
    deselected: tuple[str, ...] = ()
    selected_again: tuple[str, ...] = ()
    taken: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)


def register(
    store: ControlStore,
    name: str,
    found: Sequence[FoundObject],
    *,
    targets: Callable[[ObjectName], TableRef],
    by: Actor,
    tables: Mapping[str, SeenTable] = MappingProxyType({}),
) -> Registered:
    """Take up what the catalog of the source has now: `found` is everything there, also what is not selected.

    The selection of the replication is applied here, to the name under which an object was registered. New objects are
    PENDING, or NOT_STARTED where they are not backfilled by themselves: those begin with what is captured from now on.
    `targets` gives the table to which a new object is written; `tables`: what else the catalog has of them. To be
    called when the replication runs, after the tables are in the publication. A second run changes nothing. Raises
    ReplicationNotFound, ReplicationRefused (not started; two objects for one target), ObjectNotReplicable (a key column
    is excluded or masked); then nothing is changed.
    """
    shown = [one if one.unsupported is None else replace(one, unsupported=store.hide(one.unsupported)) for one in found]

    def look(connection: sa.Connection) -> Registered:
        replication = replications.find(connection, name).replication
        seen = register_objects(connection, store, replication, shown, targets=targets, by=by, tables=tables)
        objects = replicated_objects.of_replication(connection, replication.uid)
        return Registered(
            objects=tuple(one.object for one in objects),
            new=tuple(seen.new),
            gone=tuple(seen.gone),
            recreated=tuple(seen.recreated),
            deselected=tuple(seen.deselected),
            selected_again=tuple(seen.selected_again),
            taken=tuple(seen.taken),
            renamed=seen.renamed,
        )

    return store.write(look)


def objects_of(store: ControlStore, name: str) -> tuple[ReplicatedObject, ...]:
    """Every object of the replication, by name. Raises ReplicationNotFound."""

    def look(connection: sa.Connection) -> tuple[ReplicatedObject, ...]:
        uid = replications.find(connection, name).replication.uid
        return tuple(one.object for one in replicated_objects.of_replication(connection, uid))

    return store.read(look)


@dataclass(frozen=True)
class Remembered:
    """The state that the last look has left. `tables`: those that are excluded, under any name."""

    stored: tuple[StoredObject, ...]
    tables: tuple[HeldTable, ...]

    @property
    def objects(self) -> tuple[ReplicatedObject, ...]:
        """By name."""
        return tuple(one.object for one in self.stored)

    @property
    def held(self) -> Mapping[str, tuple[HeldColumn, ...]]:
        """Columns that a name of theirs hides, of each object by its source id."""
        return {one.object.source_id: one.held for one in self.stored}

    @property
    def column_names(self) -> Mapping[str, frozenset[str]]:
        """Names of columns of each object, by its source id."""
        return {one.object.source_id: one.column_names for one in self.stored}

    @property
    def last_seen(self) -> tuple[LastSeen, ...]:
        """The objects by the names that their tables and columns had last."""
        return tuple(_last_seen(one, self.tables) for one in self.stored)


def remembered(store: ControlStore, name: str) -> Remembered:
    """Raises ReplicationNotFound."""

    def look(connection: sa.Connection) -> Remembered:
        uid = replications.find(connection, name).replication.uid
        objects = replicated_objects.of_replication(connection, uid)
        return Remembered(objects, replications.held_tables(connection, uid))

    return store.read(look)


def get_object(store: ControlStore, name: str, object_name: str) -> ReplicatedObject:
    """The object `schema.table`. Raises ReplicationNotFound, ObjectNotFound."""
    return store.read(lambda connection: _found(connection, name, (object_name,))[0].object)


def objects_named(store: ControlStore, name: str, names: Sequence[str]) -> tuple[ReplicatedObject, ...]:
    """The objects of these names, in one look. Raises ReplicationNotFound, ObjectNotFound."""
    there = {one.name.text: one for one in objects_of(store, name)} if len(names) > 1 else {}
    return tuple(there.get(one) or get_object(store, name, one) for one in names)


def to_work_at(store: ControlStore, name: str) -> tuple[ReplicatedObject, ...]:
    """The objects that a run has something to do for: to be backfilled, or to be applied. By name; () where the
    replication is not started or paused. An object that failed for good is still applied. Raises ReplicationNotFound.
    """
    return tuple(one.object for one in work_of(store, name))


def work_of(store: ControlStore, name: str) -> tuple[StoredObject, ...]:
    """The same with what only the store knows. Raises ReplicationNotFound."""

    def has_work(replication: Replication, one: ReplicatedObject) -> bool:
        return (backfills(replication.state) and is_due(one)) or _can_be_applied(replication, one)

    return _chosen(store, name, has_work)


def to_apply(store: ControlStore, name: str) -> tuple[ReplicatedObject, ...]:
    """The objects whose captured events can be applied, by name; () where the replication is not started or paused.
    Raises ReplicationNotFound.
    """
    return tuple(one.object for one in _chosen(store, name, _can_be_applied))


def _chosen(
    store: ControlStore, name: str, choose: Callable[[Replication, ReplicatedObject], bool]
) -> tuple[StoredObject, ...]:
    def look(connection: sa.Connection) -> tuple[StoredObject, ...]:
        replication = replications.find(connection, name).replication
        objects = replicated_objects.of_replication(connection, replication.uid)
        return tuple(one for one in objects if choose(replication, one.object))

    return store.read(look)


def can_be_backfilled(store: ControlStore, name: str) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Names of the objects that can be backfilled, and why the others cannot. Raises ReplicationNotFound."""
    problems = {one.name.text: why_no_backfill(one) for one in objects_of(store, name)}
    refused = {known: problem for known, problem in problems.items() if problem is not None}
    return tuple(known for known in problems if known not in refused), refused


def request_backfill(
    store: ControlStore, name: str, names: Sequence[str], *, by: Actor, restart: bool = False
) -> tuple[ReplicatedObject, ...]:
    """The next run begins a backfill of these objects: → PENDING; one that is PENDING already stays so.

    An ACTIVE object stays so, too, unless `restart`. With it the object is PENDING again, its worker ends its job, and
    nothing that the old job answers counts. Names are `schema.table`. Raises ReplicationNotFound, ObjectNotFound,
    ObjectNotReplicable for one that is unsupported, gone or not selected; then none is requested. ReplicationRefused
    for a source that others have landed.
    """

    def request(connection: sa.Connection) -> tuple[ReplicatedObject, ...]:
        _require_backfills(connection, name)
        objects = _found(connection, name, names)
        for one in objects:
            problem = why_no_backfill(one.object)
            if problem is not None:
                remedy = "Select it, or fix it in the source, and let a run look at the source again."
                raise ObjectNotReplicable(object=one.object.name.text, problem=problem, remedy=remedy)
        for one in objects:
            act = ObjectAct.RESTART if restart else ObjectAct.REQUEST
            if object_leads_to(one.object.state, act) is not one.object.state:
                transition_object(
                    connection, store, one.object, act, by=by, give_up=restart, problem=one.object.problem
                )
        return tuple(one.object for one in _found(connection, name, names))

    return store.write(request)


def _require_backfills(connection: sa.Connection, name: str) -> None:
    """Raises ReplicationRefused where rows come with envelopes or event files only."""
    replication = replications.find(connection, name).replication
    if replication.kind.is_landed:
        raise ReplicationRefused(replication=replication.name, problem=_NO_COPY[replication.kind])


def stop_backfill(store: ControlStore, name: str, names: Sequence[str], *, by: Actor) -> tuple[ReplicatedObject, ...]:
    """PENDING or ACTIVE → STOPPED; others stay as they are. The worker of an active one ends its job. Only the job's
    answer says whether it had written already. Until then, or until the next backfill, the target is not written to. If
    it had, the object is COMPLETED after all.

    Raises ReplicationNotFound, ObjectNotFound.
    """

    def stop(connection: sa.Connection) -> tuple[ReplicatedObject, ...]:
        for one in _found(connection, name, names):
            if object_leads_to(one.object.state, ObjectAct.STOP) is not one.object.state:
                transition_object(
                    connection, store, one.object, ObjectAct.STOP, by=by, give_up=False, problem=one.object.problem
                )
        return tuple(one.object for one in _found(connection, name, names))

    return store.write(stop)


def _found(connection: sa.Connection, name: str, names: Sequence[str]) -> tuple[StoredObject, ...]:
    replication = replications.find(connection, name).replication
    wanted = dict.fromkeys(names)
    return tuple(
        replicated_objects.find(connection, replication.uid, one, replication=replication.name) for one in wanted
    )


def _last_seen(stored: StoredObject, tables: Sequence[HeldTable]) -> LastSeen:
    """An excluded object is not looked at, but its table is remembered."""
    one, seen = stored.object, stored.seen
    excluded = (table.name.text for table in tables if table.source_id == one.source_id)
    hidden = (name for column in stored.held for name in column.names)
    return LastSeen(
        uid=one.uid,
        source_id=one.source_id,
        name=one.name,
        called=next(excluded, one.name.text) if seen is None else seen.name,
        columns=None if seen is None else {column.number: column.name for column in seen.columns},
        names=frozenset({*(column.name for column in one.schema.columns), *stored.excluded, *hidden}),
        held=stored.held,
    )


def is_due(one: ReplicatedObject) -> bool:
    """Whether a run begins a backfill of it, where nobody else has it."""
    begun = one.state in (ObjectState.PENDING, ObjectState.FAILED, ObjectState.ACTIVE)
    return begun and why_no_backfill(one) is None


def _can_be_applied(replication: Replication, one: ReplicatedObject) -> bool:
    """An object that the source no longer has is done when it has the last of its events."""
    is_done = one.gone and has_all(one, replication.captured)
    return applies(replication.state) and why_not_applied(one) is None and not is_done
