"""The rows of many replications in a fixed number of queries, and one more of each sort for every further 500."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from tidemark.control.newest import newest_of_each
from tidemark.control.objects import portions
from tidemark.model.codec import from_json
from tidemark.replication.model.replication import HeldTable
from tidemark.replication.store.object_rows import StoredObject, stored_of
from tidemark.replication.store.object_writes import WriteState
from tidemark.replication.store.schema import object_writes, replicated_objects, replication_moves, replications

__all__ = ["held_of_each", "last_runs_of_each", "objects_of_each", "open_runs_of_each"]

NEWEST_MOVES = 1_000
_of, _object, _write, _move = replications.c, replicated_objects.c, object_writes.c, replication_moves.c


def objects_of_each(connection: sa.Connection, uids: Sequence[str]) -> Mapping[str, tuple[StoredObject, ...]]:
    """Every object of each replication, by name; sorted here, since databases differ in how they sort."""
    found: dict[str, list[StoredObject]] = {uid: [] for uid in uids}
    for some in portions(uids):
        query = sa.select(replicated_objects).where(_object.replication_uid.in_(some))
        for row in connection.execute(query).mappings():
            found[row["replication_uid"]].append(stored_of(row))
    return {uid: tuple(sorted(objects, key=lambda one: one.object.name)) for uid, objects in found.items()}


def held_of_each(connection: sa.Connection, uids: Sequence[str]) -> Mapping[str, tuple[HeldTable, ...]]:
    """The tables of each source that are excluded, as the last look has left them."""
    found: dict[str, tuple[HeldTable, ...]] = dict.fromkeys(uids, ())
    for some in portions(uids):
        query = sa.select(_of.uid, _of.held_tables).where(_of.uid.in_(some), _of.held_tables.is_not(None))
        for row in connection.execute(query):
            found[row.uid] = from_json(tuple[HeldTable, ...], row.held_tables)
    return found


def last_runs_of_each(connection: sa.Connection, uids: Sequence[str]) -> Mapping[str, Mapping[str | None, str]]:
    """By replication the run that moved each object last, by the object's uid; by None the one that moved the
    replication itself. Only the newest moves are looked through: there is one for each capture.
    """
    columns = (_move.replication_uid.label("uid"), _move.id.label("at"), _move.object_uid, _move.run)
    query = sa.select(*columns).where(_move.run.is_not(None))
    found = newest_of_each(connection, query, uids, of=_move.replication_uid, order=(_move.id,), most=NEWEST_MOVES)
    return {uid: {row["object_uid"]: row["run"] for row in found.get(uid, ())} for uid in uids}


def open_runs_of_each(connection: sa.Connection, uids: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
    """By replication whose the open writes of its objects are, by the object's uid; without those of no run."""
    found: dict[str, dict[str, str]] = {uid: {} for uid in uids}
    for some in portions(uids):
        query = (
            sa.select(_object.replication_uid, _write.object_uid, _write.run)
            .join(replicated_objects, _object.uid == _write.object_uid)
            .where(_object.replication_uid.in_(some))
            .where(_write.state == WriteState.OPEN.value, _write.run.is_not(None))
        )
        for row in connection.execute(query):
            found[row.replication_uid][row.object_uid] = row.run
    return found
