"""What a look at the catalog of the source makes of the objects of a replication."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.errors import ObjectRecreated, ReplicationRefused
from tidemark.model.streams import TableRef
from tidemark.replication.model.catalog import SeenTable
from tidemark.replication.model.replication import By, FoundObject, ObjectName, ObjectState, Replicated, Replication
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
from tidemark.replication.store import replicated_objects, replications
from tidemark.replication.store.replicated_objects import StoredObject
from tidemark.replication.worker.gaps import missed
from tidemark.replication.worker.moving import move_object
from tidemark.replication.worker.noticing import GONE, Noticing

__all__ = ["Seen", "take_up"]

UNCAPTURED = "it was not captured for a while, as {reason}; what happened meanwhile is not in the event log"

INCLUDED = "columns that it was replicated without are selected now ({columns}); its rows do not have them"


@dataclass
class Seen:
    """Names of objects, by what became of them."""

    new: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    recreated: list[str] = field(default_factory=list)
    deselected: list[str] = field(default_factory=list)
    selected_again: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Look:
    connection: sa.Connection
    store: ControlStore
    replication: Replication
    by: By
    seen: Seen
    noticing: Noticing

    def backfilled(self, name: ObjectName) -> bool:
        return is_backfilled(self.replication.options, name)


def take_up(
    connection: sa.Connection,
    store: ControlStore,
    replication: Replication,
    found: Sequence[FoundObject],
    *,
    targets: Callable[[ObjectName], TableRef],
    by: By,
    tables: Mapping[str, SeenTable] = MappingProxyType({}),
) -> Seen:
    """Bring the objects to what was found, in the store's transaction. A second run with the same changes nothing.

    An object is known by its id in the source, which a rename keeps: it goes on under the name that it was registered
    by; one without an id, as another cluster has taken its source's place, by its name. One whose id is gone, and whose
    name has another, was dropped and made anew: its target is kept, nothing more is written to it, and what is captured
    from now on is of the new one. A table that is excluded is known by its id, too. `tables`: what else the catalog has
    of them, by source id. Raises ReplicationRefused, ObjectNotReplicable.
    """
    if replication.captured is None or not captures(replication.state):
        problem = "objects are registered while it runs: validate it first."
        raise ReplicationRefused(replication=replication.name, problem=problem)
    known = replicated_objects.of_replication(connection, replication.uid)
    names = _named(connection, replication, {one.object.source_id: one.object.name for one in known}, found)
    noticing = Noticing(connection, store, replication, by, tables, names.renamed, names.taken)
    look = _Look(connection, store, replication, by, Seen(), noticing)
    look.seen.taken.extend(names.taken)
    look.seen.renamed.update(names.renamed)
    matched = {one.name: one for one in names.found}
    held = {one.object.source_id: one.held for one in known}
    chosen = select(replication.selection, names.found, options=replication.options, held=held)
    wanted = {one.name: one for one in chosen}
    written = {name for name, one in wanted.items() if one.unsupported is None}
    require_targets(replication.name, {*written, *held_names(one.object for one in known)})
    for stored in known:
        _bring(look, stored, matched.get(stored.object.name), wanted.get(stored.object.name))
    registered = {one.object.name for one in known}
    for name, one in sorted(wanted.items()):
        if name not in registered:
            _add(look, one, targets(name))
    return look.seen


def _named(
    connection: sa.Connection, replication: Replication, known: Mapping[str, ObjectName], found: Sequence[FoundObject]
) -> KnownNames:
    """What can be selected; what is excluded now is remembered."""
    selection = replication.selection
    held = held_tables(selection, replications.held_tables(connection, replication.uid), found, known)
    replications.note_held_tables(connection, replication.uid, held)
    return under_known_names(known, without_renamed(selection, held, found, known))


def _bring(look: _Look, stored: StoredObject, there: FoundObject | None, wanted: FoundObject | None) -> None:
    one = stored.object
    if there is None:
        _lose(look, stored)
    elif wanted is None:
        _leave(look, stored)
    elif wanted.unsupported is not None:
        _refuse(look, stored, wanted)
    elif one.source_id not in ("", wanted.source_id):
        _replace(look, stored, wanted)
    elif one.gone or not one.selected or one.state is ObjectState.UNSUPPORTED:
        _take_again(look, stored, wanted)
    else:
        _note(look, stored, wanted, problem=one.problem)
        _miss_included(look, stored, wanted)
    if there is not None and wanted is not None:
        look.noticing.look(stored, wanted)


def _note(look: _Look, stored: StoredObject, wanted: FoundObject, *, problem: str | None) -> Replicated:
    """Columns and mode are those of the catalog until the target has something; then they are as of `applied`."""
    one = replace(stored.object, gone=False, selected=True, source_id=wanted.source_id, problem=problem)
    if one.applied is None:
        one = replace(one, schema=wanted.schema, mode=mode_of(look.replication.options, wanted.schema))
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
        replicated_objects.see(look.connection, noted)
    return one


def _miss_included(look: _Look, stored: StoredObject, wanted: FoundObject) -> None:
    """Columns that were left out, are there and are taken now: of the rows that are there already nobody knows them."""
    included = sorted(set(stored.excluded) & {column.name for column in wanted.schema.columns})
    if included:
        again = replicated_objects.by_uid(look.connection, stored.object.uid)
        why = INCLUDED.format(columns=", ".join(included))
        missed(look.connection, look.store, look.replication, again, why, by=look.by)


def _lose(look: _Look, stored: StoredObject) -> None:
    """Its last events are still written down; a backfill of it would find nothing."""
    one = stored.object
    if not one.gone:
        look.seen.gone.append(one.name.text)
        gone = replace(one, gone=True)
        replicated_objects.see(look.connection, replace(stored, object=gone))
        move_object(look.connection, look.store, gone, ObjectAct.STOP, by=look.by, give_up=False)
    look.noticing.lose(stored, GONE)


def _leave(look: _Look, stored: StoredObject) -> None:
    one = stored.object
    if one.selected:
        look.seen.deselected.append(one.name.text)
        left = replace(one, selected=False)
        replicated_objects.see(look.connection, replace(stored, object=left))
        move_object(look.connection, look.store, left, ObjectAct.LEAVE, by=look.by, give_up=True)
    look.noticing.lose(stored)


def _refuse(look: _Look, stored: StoredObject, wanted: FoundObject) -> None:
    problem = wanted.unsupported
    noted = _note(look, stored, wanted, problem=problem)
    if noted.state is not ObjectState.UNSUPPORTED:
        move_object(look.connection, look.store, noted, ObjectAct.REFUSE, by=look.by, give_up=True, problem=problem)


def _replace(look: _Look, stored: StoredObject, wanted: FoundObject) -> None:
    """Another table has the name. An old target waits for a backfill that is asked for; without one it is begun."""
    one = stored.object
    look.seen.recreated.append(one.name.text)
    if one.state is ObjectState.UNSUPPORTED:
        _take_again(look, stored, wanted)
        return
    noted = _note(look, stored, wanted, problem=None)
    asked = one.applied is None and look.backfilled(one.name)
    move_object(
        look.connection,
        look.store,
        noted,
        ObjectAct.RESTART if asked else ObjectAct.STOP,
        by=look.by,
        give_up=True,
        flagged=None if one.applied is None else str(ObjectRecreated(object=one.name.text)),
        called="recreate",
    )


def _take_again(look: _Look, stored: StoredObject, wanted: FoundObject) -> None:
    """What happened while it was not captured is lost, so a target that has something waits for a backfill."""
    one = stored.object
    reason = _why_uncaptured(one)
    if not one.selected:
        look.seen.selected_again.append(one.name.text)
    noted = _note(look, stored, wanted, problem=None)
    flagged = None if one.applied is None else UNCAPTURED.format(reason=reason)
    move_object(look.connection, look.store, noted, ObjectAct.ALLOW, by=look.by, give_up=True, flagged=flagged)
    if look.backfilled(one.name):
        again = replicated_objects.by_uid(look.connection, one.uid).object
        move_object(look.connection, look.store, again, ObjectAct.ASK, by=look.by, give_up=True)
    elif one.applied is None:
        replicated_objects.begin_at(look.connection, one.uid, look.replication.captured, new_log=False)


def _why_uncaptured(one: Replicated) -> str:
    if one.gone:
        return "the source did not show it"
    return "it could not be replicated" if one.selected else "the selection did not name it"


def _add(look: _Look, found: FoundObject, target: TableRef) -> None:
    """One that is not backfilled begins where the event log ends now."""
    options, replication = look.replication.options, look.replication
    backfilled = look.backfilled(found.name)
    begins = found.unsupported is None and not backfilled
    state = ObjectState.PENDING if backfilled else ObjectState.NOT_STARTED
    one = Replicated(
        uid=look.store.new_id(),
        replication_uid=replication.uid,
        name=found.name,
        source_id=found.source_id,
        schema=found.schema,
        mode=mode_of(options, found.schema),
        target=target,
        state=state if found.unsupported is None else ObjectState.UNSUPPORTED,
        applied=replication.captured if begins else None,
        applied_at=replication.captured_at if begins else None,
        problem=found.unsupported,
    )
    stored = StoredObject(one, None, found.schema.keys, found.excluded, None, found.rows)
    replicated_objects.insert(look.connection, stored, at=look.store.clock(), by=look.by)
    look.noticing.register(one.uid, found)
    look.seen.new.append(found.name.text)
