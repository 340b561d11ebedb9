"""Clustered tables in the store: each move by name, with its condition."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.clustering.model.tables import ClusteredTable, Goal, Seen
from tidemark.clustering.store.schema import clustered_tables
from tidemark.control.objects import touch
from tidemark.model.codec import from_json, to_json
from tidemark.model.streams import Addressing, TableRef

__all__ = [
    "end_earlier",
    "end_table",
    "live_tables",
    "lookup_table",
    "note_problem",
    "note_seen",
    "register_table",
    "resume_table",
    "set_goal",
    "suspend_table",
    "tables_with_uids",
]

_of = clustered_tables.c
_KIND = "clustered_table"
_NO_PROBLEM = {"problem": None, "problem_at": None, "problem_run": None}


def lookup_table(connection: sa.Connection, table_id: str) -> ClusteredTable | None:
    """The live registration of the table with that id, or None."""
    row = connection.execute(_live().where(_of.table_id == table_id)).mappings().first()
    return None if row is None else _of_row(row)


def live_tables(connection: sa.Connection) -> tuple[ClusteredTable, ...]:
    """All registered tables by name; sorted here, since databases differ in how they sort."""
    found = map(_of_row, connection.execute(_live()).mappings())
    return tuple(sorted(found, key=lambda one: one.name.casefold()))


def tables_with_uids(connection: sa.Connection, uids: Sequence[str]) -> tuple[ClusteredTable, ...]:
    """Those of the uids that are registered."""
    return tuple(_of_row(row) for row in connection.execute(_live().where(_of.uid.in_(uids))).mappings())


def register_table(connection: sa.Connection, table: ClusteredTable, *, by: str) -> ClusteredTable:
    """The registration of the table, with the key and the name of `table`. A first one is inserted; a second run
    changes nothing. Another key forgets what was seen. The registration of an earlier table at the path ends. `by`: the
    key of the run, or who does it.
    """
    kept = lookup_table(connection, table.table.table_id)
    end_earlier(connection, table.table, at=table.created_at, by=by)
    if kept is None:
        connection.execute(clustered_tables.insert().values(_values(table)))
        touch(connection, _KIND, [table.uid], by=by)
        return table
    values: dict[str, Any] = {"name": table.name, "path": table.table.path, "addressing": table.table.addressing.value}
    if kept.key != table.key:
        values |= {"cluster_key": to_json(table.key), "seen": None, "seen_at": None}
    _change(connection, kept, by=by, **values)
    return lookup_table(connection, table.table.table_id) or table


def end_table(connection: sa.Connection, table: ClusteredTable, *, at: datetime, by: str) -> bool:
    """The table is not kept clustered from now on; True if it was. Its ledger stays."""
    return _change(connection, table, by=by, ended_at=at)


def end_earlier(connection: sa.Connection, table: TableRef, *, at: datetime, by: str) -> None:
    """End the registrations of other tables at the path of this one."""
    other = (_of.path == table.path, _of.table_id != table.table_id)
    for row in connection.execute(_live().where(*other)).mappings().all():
        end_table(connection, _of_row(row), at=at, by=by)


def set_goal(connection: sa.Connection, table: ClusteredTable, goal: Goal, *, by: str) -> bool:
    """Give the table other bounds; True if it is registered."""
    return _change(connection, table, by=by, goal=to_json(goal))


def suspend_table(connection: sa.Connection, table: ClusteredTable, *, why: str, by: str) -> bool:
    """The table is not reclustered from now on; True if it was."""
    return _change(connection, table, _of.suspended.is_(None), by=by, suspended=why)


def resume_table(connection: sa.Connection, table: ClusteredTable, *, by: str) -> bool:
    """The table is reclustered again; True if it was not."""
    return _change(connection, table, _of.suspended.is_not(None), by=by, suspended=None)


def note_seen(connection: sa.Connection, table: ClusteredTable, seen: Seen, *, at: datetime, by: str) -> bool:
    """Keep the state of the table as it was looked at. False if a later look was kept, or another key was set."""
    newest = _of.seen_at.is_(None) | (_of.seen_at <= at)
    same = _of.cluster_key == to_json(table.key)
    return _change(connection, table, newest, same, by=by, seen=to_json(seen), seen_at=at, **_NO_PROBLEM)


def note_problem(connection: sa.Connection, table: ClusteredTable, *, problem: str, at: datetime, by: str) -> bool:
    """An attempt has failed. False if the table is not registered any more."""
    return _change(connection, table, by=by, problem=problem, problem_at=at, problem_run=by)


def _live() -> sa.Select[tuple[object, ...]]:
    return sa.select(clustered_tables).where(_of.ended_at.is_(None))


def _change(
    connection: sa.Connection, table: ClusteredTable, *expected: sa.ColumnElement[bool], by: str, **values: Any
) -> bool:
    standing = clustered_tables.update().where(_of.uid == table.uid, _of.ended_at.is_(None), *expected)
    changed = connection.execute(standing.values(**values)).rowcount == 1
    if changed:
        touch(connection, _KIND, [table.uid], by=by)
    return changed


def _values(table: ClusteredTable) -> dict[str, Any]:
    return {
        "uid": table.uid,
        "name": table.name,
        "path": table.table.path,
        "table_id": table.table.table_id,
        "addressing": table.table.addressing.value,
        "cluster_key": to_json(table.key),
        "created_at": table.created_at,
        "goal": to_json(table.goal),
        "suspended": table.suspended,
    }


def _of_row(row: sa.RowMapping) -> ClusteredTable:
    return ClusteredTable(
        uid=row["uid"],
        table=TableRef(row["name"], row["path"], row["table_id"], Addressing(row["addressing"])),
        key=from_json(tuple[str, ...], row["cluster_key"]),
        created_at=row["created_at"],
        goal=from_json(Goal, row["goal"]),
        suspended=row["suspended"],
        seen=None if row["seen"] is None else from_json(Seen, row["seen"]),
        seen_at=row["seen_at"],
        problem=row["problem"],
        problem_at=row["problem_at"],
        problem_run=row["problem_run"],
        ended_at=row["ended_at"],
    )
