"""The replications that tasks captured and moved, the tables that they wrote, and the last task of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from tidemark.control.newest import newest_value, values_of_each
from tidemark.control.run_keys import RunPart, Touch
from tidemark.control.samples import newest_run, sums_of_runs
from tidemark.replication.planning.positions import position_text
from tidemark.replication.store.schema import (
    object_writes,
    replicated_objects,
    replication_moves,
    replications,
)

__all__ = ["replication_runs", "replications_of_runs", "table_runs", "tables_of_runs"]

_of, _move = object_writes.c, replication_moves.c


def replication_runs(connection: sa.Connection, uids: Sequence[str]) -> Mapping[str, str]:
    """The task whose capture brought events to each last; without one, the task that moved it last. One query."""
    own = replications.c.uid
    moved = newest_value(_move.run, _move.replication_uid == own, _move.run.is_not(None), of=own, order=_move.id)
    return values_of_each(connection, own, uids, newest_run("replication", own), moved)


def table_runs(connection: sa.Connection, uids: Sequence[str]) -> Mapping[str, str]:
    """The task that wrote each table last, or began to. One query."""
    own = replicated_objects.c.uid
    written = newest_value(_of.run, _of.object_uid == own, _of.run.is_not(None), of=own, order=_of.number)
    return values_of_each(connection, own, uids, written)


def replications_of_runs(connection: sa.Connection, part: RunPart) -> Mapping[str, Touch]:
    """The replications that these tasks captured or moved, by uid, with the events and the moves. Two queries, which
    read the history of the replications that the DAG owns.
    """
    columns = (_move.replication_uid, _move.act, _move.why)
    of_it = _move.replication_uid.in_(part.owned("replication")) & _move.object_uid.is_(None)
    rows = connection.execute(sa.select(*columns).where(of_it, part.has(_move.run)).order_by(_move.id))
    moved: dict[str, dict[str, str]] = {}
    for row in rows:
        moved.setdefault(row.replication_uid, {})[row.act] = row.why
    sums = sums_of_runs(connection, "replication", part)
    return {uid: _moved(moved.get(uid, {}), sums.get(uid)) for uid in dict.fromkeys((*moved, *sums))}


def _moved(acts: Mapping[str, str], sums: Mapping[str, float] | None) -> Touch:
    """Its acts in their order; a capture has its events."""
    captured = "capture" if sums is None else f"{round(sums['events']):,} events captured"
    said = dict.fromkeys(captured if act == "capture" else act for act in acts) or {captured: None}
    whys = [why for why in acts.values() if why]
    return Touch(", ".join(said), whys[-1] if whys else None)


def tables_of_runs(connection: sa.Connection, part: RunPart) -> Mapping[str, Touch]:
    """The tables that these tasks wrote, by uid, with the newest write of each. One query, which reads the writes of
    the tables that the DAG owns.
    """
    owned = part.owned("replicated_table")
    columns = (_of.object_uid, _of.kind, _of.state, _of.start_position, _of.end_position)
    written = sa.select(*columns).where(_of.object_uid.in_(owned), part.has(_of.run))
    rows = connection.execute(written.order_by(_of.number))
    return {row.object_uid: Touch(f"{row.kind} {row.state}", _why(row)) for row in rows}


def _why(row: Any) -> str | None:
    """An apply has the events between two positions. A backfill has none: it was requested, or was due."""
    if row.kind == "backfill":
        return "its backfill was due: all rows of the source's table"
    if row.start_position is None or row.end_position is None:
        return None
    return f"captured events from {position_text(row.start_position)} up to {position_text(row.end_position)}"
