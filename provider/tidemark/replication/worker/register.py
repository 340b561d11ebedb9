"""The changes that a look at the source's catalog makes to the objects of a replication."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.errors import ObjectNotReplicable, ObjectRecreated, ReplicationRefused
from tidemark.model.streams import TableRef
from tidemark.replication.model.catalog import SeenTable
from tidemark.replication.model.replication import (
    Actor,
    FoundObject,
    ObjectName,
    ObjectState,
    ReplicatedObject,
    Replication,
)
from tidemark.replication.planning.kept_out import held_tables, without_renamed
from tidemark.replication.planning.lifecycle import ObjectAct, captures
from tidemark.replication.planning.selection import (
    KnownNames,
    held_names,
    is_backfilled,
    mode_of,
    require_targets,
    select,
    under_known_names,
)
from tidemark.replication.planning.unnumbered import held_now
from tidemark.replication.store import replicated_objects, replications
from tidemark.replication.store.replicated_objects import StoredObject
from tidemark.replication.store.replication_errors import keep_of
from tidemark.replication.worker.catalog_changes import GONE, CatalogChanges
from tidemark.replication.worker.gaps import missed
from tidemark.replication.worker.transitions import transition_object

__all__ = ["Outcome", "register_objects"]

UNCAPTURED = "it was not captured for a while, since {reason}: its changes of that time are not in the event log"

INCLUDED = "columns that it was replicated without are selected now ({columns}); its rows do not have them"


@dataclass
class Outcome:
    """Names of objects, by what became of them."""

    new: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    recreated: list[str] = field(default_factory=list)
    deselected: list[str] = field(default_factory=list)
    selected_again: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Registration:
    connection: sa.Connection
    store: ControlStore
    replication: Replication
    by: Actor
    outcome: Outcome
    changes: CatalogChanges

    def backfilled(self, name: ObjectName) -> bool:
        return is_backfilled(self.replication.options, name)


def register_objects(
    connection: sa.Connection,
    store: ControlStore,
    replication: Replication,
    found: Sequence[FoundObject],
    *,
    targets: Callable[[ObjectName], TableRef],
    by: Actor,
    tables: Mapping[str, SeenTable] = MappingProxyType({}),
) -> Outcome:
    """Bring the objects to what was found, in the store's transaction. A second run with the same changes nothing.

    An object is known by its id in the source, which a rename keeps: it continues under its registered name. An object
    without an id is known by its name, since another cluster has taken its source's place. If an object's id is gone
    and its name has another id, the table was dropped and recreated. Its target is kept, and nothing more is written to
    it. Events captured from now on are of the new table. A table that is excluded is known by its id, too. `tables`:
    what else the catalog has of them, by source id. Raises ReplicationRefused, ObjectNotReplicable.
    """
    if replication.captured is None or not captures(replication.state):
        problem = "objects are registered while it runs: validate it first."
        raise ReplicationRefused(replication=replication.name, problem=problem)
    known = replicated_objects.of_replication(connection, replication.uid)
    names = _named(connection, replication, {one.object.source_id: one.object.name for one in known}, found)
    changes = CatalogChanges(connection, store, replication, by, tables, names.renamed, names.taken)
    registration = _Registration(connection, store, replication, by, Outcome(), changes)
    registration.outcome.taken.extend(names.taken)
    registration.outcome.renamed.update(names.renamed)
    matched = {one.name: one for one in names.found}
    held = held_now(
        {one.object.source_id: one.held for one in known},
        {one.object.source_id: one.column_names for one in known},
        names.found,
    )
    chosen = select(replication.selection, names.found, options=replication.options, held=held)
    wanted = {one.name: one for one in chosen}
    written = {name for name, one in wanted.items() if one.unsupported is None}
    target_table = replication.options.target_table
    require_targets(replication.name, {*written, *held_names(one.object for one in known)}, target_table=target_table)
    for stored in known:
        _bring(registration, stored, matched.get(stored.object.name), wanted.get(stored.object.name))
    registered = {one.object.name for one in known}
    for name, one in sorted(wanted.items()):
        if name not in registered:
            _add(registration, one, targets(name))
    return registration.outcome


def _named(
    connection: sa.Connection, replication: Replication, known: Mapping[str, ObjectName], found: Sequence[FoundObject]
) -> KnownNames:
    """The tables that can be selected; tables that are excluded now are remembered."""
    selection = replication.selection
    held = held_tables(selection, replications.held_tables(connection, replication.uid), found, known)
    replications.record_held_tables(connection, replication.uid, held)
    return under_known_names(known, without_renamed(selection, held, found, known))


def _bring(
    registration: _Registration, stored: StoredObject, there: FoundObject | None, wanted: FoundObject | None
) -> None:
    one = stored.object
    if there is None:
        _lose(registration, stored)
    elif wanted is None:
        _leave(registration, stored)
    elif wanted.unsupported is not None:
        _refuse(registration, stored, wanted)
    elif one.source_id not in ("", wanted.source_id):
        _replace(registration, stored, wanted)
    elif one.gone or not one.selected or one.state is ObjectState.UNSUPPORTED:
        _take_again(registration, stored, wanted)
    else:
        _note(registration, stored, wanted, problem=one.problem)
        _miss_included(registration, stored, wanted)
    if there is not None and wanted is not None:
        registration.changes.compare(stored, wanted)


def _note(
    registration: _Registration, stored: StoredObject, wanted: FoundObject, *, problem: str | None
) -> ReplicatedObject:
    """Columns and mode are those of the catalog until the target has something; then they are as of `applied`."""
    one = replace(stored.object, gone=False, selected=True, source_id=wanted.source_id, problem=problem)
    if one.applied is None:
        one = replace(
            one, schema=wanted.schema, mode=mode_of(registration.replication.options, wanted.name, wanted.schema)
        )
    known = stored.captured_schema if stored.object.source_id == wanted.source_id else None
    noted = replace(
        stored,
        object=one,
        captured_schema=known,
        keys=wanted.schema.keys,
        excluded=wanted.excluded,
        expected_rows=wanted.rows,
    )
    if noted != stored:
        replicated_objects.record_source(registration.connection, noted)
    return one


def _miss_included(registration: _Registration, stored: StoredObject, wanted: FoundObject) -> None:
    """Columns that exist, were left out, and are taken now. Nobody knows their values in rows that the target has
    already.
    """
    included = sorted(set(stored.excluded) & {column.name for column in wanted.schema.columns})
    if included:
        again = replicated_objects.by_uid(registration.connection, stored.object.uid)
        why = INCLUDED.format(columns=", ".join(included))
        missed(registration.connection, registration.store, registration.replication, again, why, by=registration.by)


def _lose(registration: _Registration, stored: StoredObject) -> None:
    """Its last events are still applied; a backfill of it would find nothing."""
    one = stored.object
    if not one.gone:
        registration.outcome.gone.append(one.name.text)
        gone = replace(one, gone=True)
        replicated_objects.record_source(registration.connection, replace(stored, object=gone))
        transition_object(
            registration.connection, registration.store, gone, ObjectAct.STOP, by=registration.by, give_up=False
        )
    registration.changes.lose(stored, GONE)


def _leave(registration: _Registration, stored: StoredObject) -> None:
    one = stored.object
    if one.selected:
        registration.outcome.deselected.append(one.name.text)
        left = replace(one, selected=False)
        replicated_objects.record_source(registration.connection, replace(stored, object=left))
        transition_object(
            registration.connection, registration.store, left, ObjectAct.LEAVE, by=registration.by, give_up=True
        )
    registration.changes.lose(stored)


def _refuse(registration: _Registration, stored: StoredObject, wanted: FoundObject) -> None:
    """Its problem is an error of the list when it is news, not at every look."""
    problem, by = wanted.unsupported, registration.by
    noted = _note(registration, stored, wanted, problem=problem)
    reason = ObjectNotReplicable.__name__
    if noted.state is not ObjectState.UNSUPPORTED:
        transition_object(
            registration.connection,
            registration.store,
            noted,
            ObjectAct.REFUSE,
            by=by,
            give_up=True,
            problem=problem,
            reason=reason,
        )
    elif problem is not None and problem != stored.object.problem:
        at = registration.store.clock()
        keep_of(registration.connection, noted, reason=reason, message=problem, at=at, by=by)


def _replace(registration: _Registration, stored: StoredObject, wanted: FoundObject) -> None:
    """Another table has the name. An old target waits for a backfill that is requested; without one it is begun."""
    one = stored.object
    registration.outcome.recreated.append(one.name.text)
    if one.state is ObjectState.UNSUPPORTED:
        _take_again(registration, stored, wanted)
        return
    noted = _note(registration, stored, wanted, problem=None)
    requested = one.applied is None and registration.backfilled(one.name)
    transition_object(
        registration.connection,
        registration.store,
        noted,
        ObjectAct.RESTART if requested else ObjectAct.STOP,
        by=registration.by,
        give_up=True,
        needs_backfill=None if one.applied is None else str(ObjectRecreated(object=one.name.text)),
        called="recreate",
    )


def _take_again(registration: _Registration, stored: StoredObject, wanted: FoundObject) -> None:
    """Events from the time when it was not captured are lost, so a target that has something waits for a backfill."""
    one = stored.object
    reason = _why_uncaptured(one)
    if not one.selected:
        registration.outcome.selected_again.append(one.name.text)
    noted = _note(registration, stored, wanted, problem=None)
    needs_backfill = None if one.applied is None else UNCAPTURED.format(reason=reason)
    transition_object(
        registration.connection,
        registration.store,
        noted,
        ObjectAct.ALLOW,
        by=registration.by,
        give_up=True,
        needs_backfill=needs_backfill,
    )
    if registration.backfilled(one.name):
        again = replicated_objects.by_uid(registration.connection, one.uid).object
        transition_object(
            registration.connection, registration.store, again, ObjectAct.REQUEST, by=registration.by, give_up=True
        )
    elif one.applied is None:
        replicated_objects.begin_at(registration.connection, one.uid, registration.replication.captured, new_log=False)


def _why_uncaptured(one: ReplicatedObject) -> str:
    if one.gone:
        return "the source did not show it"
    return "it could not be replicated" if one.selected else "the selection did not name it"


def _add(registration: _Registration, found: FoundObject, target: TableRef) -> None:
    """An object that is not backfilled begins at the current end of the event log."""
    options, replication = registration.replication.options, registration.replication
    backfilled = registration.backfilled(found.name)
    begins = found.unsupported is None and not backfilled
    state = ObjectState.PENDING if backfilled else ObjectState.NOT_STARTED
    one = ReplicatedObject(
        uid=registration.store.new_id(),
        replication_uid=replication.uid,
        name=found.name,
        source_id=found.source_id,
        schema=found.schema,
        mode=mode_of(options, found.name, found.schema),
        target=target,
        state=state if found.unsupported is None else ObjectState.UNSUPPORTED,
        applied=replication.captured if begins else None,
        applied_at=replication.captured_at if begins else None,
        problem=found.unsupported,
    )
    stored = StoredObject(one, None, found.schema.keys, found.excluded, None, found.rows)
    replicated_objects.insert(registration.connection, stored, at=registration.store.clock(), by=registration.by)
    registration.changes.register(one.uid, found)
    registration.outcome.new.append(found.name.text)
