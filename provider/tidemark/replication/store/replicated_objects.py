"""The objects of replications in the store: each state move by name, with its condition."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.control.objects import portions, touch
from tidemark.errors import BackfillNeeded, ObjectNotFound, ObjectNotReplicable
from tidemark.model.codec import to_json
from tidemark.model.streams import TableRef
from tidemark.replication.model.catalog import HeldColumn, SeenTable
from tidemark.replication.model.replication import (
    Actor,
    BackfillProgress,
    LogPosition,
    ObjectState,
    ReplicatedObject,
    ReplicationTransition,
    TableSchema,
    WriteMode,
)
from tidemark.replication.store.object_rows import StoredObject, stored_of, target_of
from tidemark.replication.store.replication_errors import keep_of
from tidemark.replication.store.replications import keep_transition
from tidemark.replication.store.schema import replicated_objects, replications

__all__ = [
    "StoredObject",
    "apply",
    "begin_at",
    "by_uid",
    "draw_number",
    "find",
    "insert",
    "known_as",
    "left_in",
    "move_on",
    "of_replication",
    "of_uids",
    "place",
    "record_changes",
    "record_discovery",
    "record_schema",
    "record_source",
    "set_problem",
    "set_progress",
    "transition",
]

_KIND = "replicated_table"
_of = replicated_objects.c


def by_uid(connection: sa.Connection, uid: str) -> StoredObject:
    """The object with that uid. Raises ObjectNotFound."""
    row = connection.execute(sa.select(replicated_objects).where(_of.uid == uid)).mappings().first()
    if row is None:
        raise ObjectNotFound(replication="any", object=uid, known="others")
    return stored_of(row)


def of_replication(connection: sa.Connection, replication_uid: str) -> tuple[StoredObject, ...]:
    """Every object of the replication, by name; sorted here, since databases differ in how they sort."""
    query = sa.select(replicated_objects).where(_of.replication_uid == replication_uid)
    found = (stored_of(row) for row in connection.execute(query).mappings())
    return tuple(sorted(found, key=lambda one: one.object.name))


def of_uids(connection: sa.Connection, uids: Sequence[str]) -> tuple[StoredObject, ...]:
    """The objects with these uids, of any replication; uids without an object are left out."""
    found: list[StoredObject] = []
    for some in portions(uids):
        query = sa.select(replicated_objects).where(_of.uid.in_(some))
        found.extend(stored_of(row) for row in connection.execute(query).mappings())
    return tuple(found)


def find(connection: sa.Connection, replication_uid: str, name: str, *, replication: str) -> StoredObject:
    """The object `schema.table`; no other one is read. Raises ObjectNotFound."""
    named = _of.schema_name + "." + _of.table_name
    query = sa.select(replicated_objects).where(_of.replication_uid == replication_uid, named == name)
    row = connection.execute(query).mappings().first()
    if row is not None:
        return stored_of(row)
    names = connection.execute(sa.select(named).where(_of.replication_uid == replication_uid)).scalars()
    known = ", ".join(sorted(names)) or "none"
    raise ObjectNotFound(replication=replication, object=name, known=known)


def left_in(connection: sa.Connection, target: TableRef) -> tuple[str, ...]:
    """Uids of the objects of dropped replications that had this target, by its place or its name."""
    dropped = replications.c.dropped_at.is_not(None) & (replications.c.uid == _of.replication_uid)
    found = connection.execute(sa.select(_of.uid, _of.target).join(replications, dropped).order_by(_of.uid))
    had = ((uid, target_of(text)) for uid, text in found)
    return tuple(uid for uid, one in had if one.path == target.path or one.name == target.name)


def insert(connection: sa.Connection, stored: StoredObject, *, at: datetime, by: Actor) -> None:
    """Add an object; its name must be free in its replication."""
    one = stored.object
    connection.execute(
        replicated_objects.insert().values(
            uid=one.uid,
            replication_uid=one.replication_uid,
            schema_name=one.name.schema,
            table_name=one.name.table,
            source_id=one.source_id,
            columns=to_json(one.schema),
            source_keys=to_json(stored.keys),
            excluded=to_json(stored.excluded),
            mode=one.mode.value,
            target=to_json(one.target),
            state=one.state.value,
            applied=one.applied,
            applied_at=one.applied_at,
            writes=0,
            expected_rows=stored.expected_rows,
            gone=one.gone,
            selected=one.selected,
            problem=one.problem,
        )
    )
    _keep(connection, one, "register", ObjectState.NOT_STARTED, one.state, at=at, by=by, position=one.applied)
    if one.problem is not None:
        keep_of(connection, one, reason=ObjectNotReplicable.__name__, message=one.problem, at=at, by=by)


def record_source(connection: sa.Connection, stored: StoredObject) -> None:
    """The result of a look at the source: identity, selection, statistics; until the first backfill also its columns
    and mode. Position and state are moved by name only.
    """
    one = stored.object
    values = {
        "source_id": one.source_id,
        "columns": to_json(one.schema),
        "captured_columns": None if stored.captured_schema is None else to_json(stored.captured_schema),
        "source_keys": to_json(stored.keys),
        "excluded": to_json(stored.excluded),
        "mode": one.mode.value,
        "expected_rows": stored.expected_rows,
        "needs_backfill": one.needs_backfill,
        "gone": one.gone,
        "selected": one.selected,
        "problem": one.problem,
    }
    connection.execute(replicated_objects.update().where(_of.uid == one.uid).values(values))
    touch(connection, _KIND, (one.uid,))


def transition(
    connection: sa.Connection,
    one: ReplicatedObject,
    act: str,
    to: ObjectState,
    *,
    at: datetime,
    by: Actor,
    needs_backfill: str | None = None,
    problem: str | None = None,
    reason: str | None = None,
) -> bool:
    """To a state, if it still is as it was read; True if it was so. `needs_backfill` and `problem` are set as they are
    said; an earlier `needs_backfill` is not taken away. `reason`: `problem` was met now, and is kept or counted in the
    list of errors, as a new `needs_backfill` is.
    """
    values = {"state": to.value, "needs_backfill": needs_backfill or one.needs_backfill, "problem": problem}
    moved = connection.execute(replicated_objects.update().where(_standing(one)).values(values)).rowcount == 1
    touch(connection, _KIND, (one.uid,), by=by.run or by.who)
    news = needs_backfill if needs_backfill != one.needs_backfill else None
    if moved and (to is not one.state or news):
        _keep(connection, one, act, one.state, to, at=at, by=by)
    if moved and news:
        keep_of(connection, one, reason=BackfillNeeded.__name__, message=news, at=at, by=by)
    if moved and problem is not None and reason is not None:
        keep_of(connection, one, reason=reason, message=problem, at=at, by=by)
    return moved


def draw_number(connection: sa.Connection, one: ReplicatedObject) -> int:
    """The next number for a write to the target. It is never given again, since this same serialisable transaction has
    read the object.
    """
    number = one.writes + 1
    connection.execute(replicated_objects.update().where(_of.uid == one.uid).values(writes=number))
    return number


def place(
    connection: sa.Connection,
    one: ReplicatedObject,
    to: ObjectState,
    *,
    snapshot: LogPosition,
    applied: LogPosition,
    shows: datetime | None,
    schema: TableSchema,
    target: TableRef,
    progress: BackfillProgress | None,
    at: datetime,
    by: Actor,
    seen: SeenTable | None = None,
) -> bool:
    """Compare-and-set: record that the target is a copy as of `snapshot` with every event before `applied`. The object
    must be as it was read, and its target have nothing newer. Returns whether it did. `shows`: all that was committed
    by then is in it. To an append-only target a copy adds rows and takes the place of no event, so `applied` stays
    where it was. `seen`: the catalog at the snapshot; None where it is not known.
    """
    behind = applied < snapshot and one.mode is not WriteMode.APPEND_ONLY
    if behind or (one.applied is not None and applied < one.applied):
        return False
    values = {
        "state": to.value,
        "snapshot": snapshot,
        "applied": applied,
        "applied_at": shows,
        "columns": to_json(schema),
        "target": to_json(target),
        "progress": None if progress is None else to_json(progress),
        "needs_backfill": None,
        "problem": None,
        **({} if seen is None else {"seen": to_json(seen)}),
    }
    moved = connection.execute(replicated_objects.update().where(_standing(one)).values(values)).rowcount == 1
    if moved:
        _keep(connection, one, "complete", one.state, to, at=at, by=by, position=applied)
    return moved


def apply(
    connection: sa.Connection,
    one: ReplicatedObject,
    to: LogPosition,
    *,
    shows: datetime | None,
    schema: TableSchema,
    needs_backfill: str | None = None,
) -> bool:
    """Compare-and-set: record that the target has every event before `to`, if `applied` is as it was read and not after
    `to`. Returns whether it did.
    """
    if one.applied is None or to < one.applied:
        return False
    values = {
        "applied": to,
        "applied_at": shows or one.applied_at,
        "columns": to_json(schema),
        "needs_backfill": needs_backfill or one.needs_backfill,
        "problem": needs_backfill,
    }
    touch(connection, _KIND, (one.uid,))
    standing = (_of.uid == one.uid) & (_of.applied == one.applied)
    return connection.execute(replicated_objects.update().where(standing).values(values)).rowcount == 1


def move_on(
    connection: sa.Connection, stand: Sequence[ReplicatedObject], to: LogPosition, *, shows: datetime | None
) -> None:
    """The targets have every event before `to`, as these objects have no new one. The same serialisable transaction
    must have read the objects. Thousands of them take a few statements.
    """
    shown = {} if shows is None else {"applied_at": shows}
    for some in portions(stand):
        these = _of.uid.in_([one.uid for one in some])
        connection.execute(replicated_objects.update().where(these).values(applied=to, problem=None, **shown))
    touch(connection, _KIND, (one.uid for one in stand if one.problem is not None))


def begin_at(connection: sa.Connection, uid: str, position: LogPosition | None, *, new_log: bool) -> None:
    """The object is another one's successor, or its log has begun again. The target has the events before `position`,
    None for nothing that counts. The store forgets which events the log has of it.
    """
    values: dict[str, Any] = {"snapshot": None, "applied": position, "changed_until": None}
    if new_log:
        values["captured_columns"] = None
    connection.execute(replicated_objects.update().where(_of.uid == uid).values(values))


def known_as(
    connection: sa.Connection, uid: str, source_id: str, held: Sequence[HeldColumn], *, alike: bool = False
) -> None:
    """The source is another cluster, where the object has this id, "" for one that is not known there, and these
    columns hidden. The look at the old cluster says something of the object only if both are the same (`alike`).
    """
    seen = {} if alike else {"seen": None}
    values = {"source_id": source_id, "held": to_json(tuple(held)) if held else None, **seen}
    connection.execute(replicated_objects.update().where(_of.uid == uid).values(values))


def record_changes(connection: sa.Connection, uid: str, until: LogPosition) -> None:
    """Events of the object were captured, or may have been, all of them before `until`."""
    connection.execute(replicated_objects.update().where(_of.uid == uid).values(changed_until=until))


def record_schema(connection: sa.Connection, uid: str, schema: TableSchema) -> None:
    """The event log has an event of this schema, and none of a newer one."""
    connection.execute(replicated_objects.update().where(_of.uid == uid).values(captured_columns=to_json(schema)))


def record_discovery(
    connection: sa.Connection,
    stored: StoredObject,
    *,
    seen: SeenTable | None,
    held: Sequence[HeldColumn],
    notices: Sequence[str],
) -> None:
    """The result of a look at the catalog of the source, and its notices for somebody, if they are not recorded
    already.
    """
    if (stored.seen, stored.held, stored.notices) == (seen, tuple(held), tuple(notices)):
        return
    values = {
        "seen": None if seen is None else to_json(seen),
        "held": to_json(tuple(held)) if held else None,
        "notices": to_json(tuple(notices)) if notices else None,
    }
    connection.execute(replicated_objects.update().where(_of.uid == stored.object.uid).values(values))
    touch(connection, _KIND, (stored.object.uid,))


def set_problem(connection: sa.Connection, uid: str, problem: str | None) -> None:
    """The problem of the last run."""
    connection.execute(replicated_objects.update().where(_of.uid == uid).values(problem=problem))
    touch(connection, _KIND, (uid,))


def set_progress(connection: sa.Connection, uid: str, *, number: int, progress: BackfillProgress | None) -> bool:
    """How far backfill `number` is, None before its first rows, if it is the active one; True if it was so."""
    active = (_of.uid == uid) & (_of.state == ObjectState.ACTIVE.value) & (_of.writes == number)
    kept = replicated_objects.update().where(active).values(progress=None if progress is None else to_json(progress))
    return connection.execute(kept).rowcount == 1


def _standing(one: ReplicatedObject) -> sa.ColumnElement[bool]:
    return (_of.uid == one.uid) & (_of.state == one.state.value) & (_of.writes == one.writes)


def _keep(
    connection: sa.Connection,
    one: ReplicatedObject,
    act: str,
    before: ObjectState,
    after: ObjectState,
    *,
    at: datetime,
    by: Actor,
    position: LogPosition | None = None,
) -> None:
    touch(connection, _KIND, (one.uid,), by=by.run or by.who)
    moved = ReplicationTransition(one.replication_uid, one.uid, act, before.value, after.value, at, by, position)
    keep_transition(connection, moved)
