"""The ledger of reclusterings: planned ahead, ended, and kept as the history of a table."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.clustering.model.tables import How, Recluster, ReclusterState
from tidemark.clustering.store.schema import reclusterings
from tidemark.control.history import Cursor, Step, drop_by_number

__all__ = [
    "bytes_since",
    "drop_reclusterings",
    "end_recluster",
    "failures",
    "find_recluster",
    "history",
    "plan_recluster",
]

_of = reclusterings.c


def plan_recluster(connection: sa.Connection, recluster: Recluster) -> Recluster:
    """The reclustering, written ahead; the one that the run has planned for the table before, if it has."""
    kept = find_recluster(connection, recluster.table_uid, recluster.run)
    if kept is not None:
        return kept
    connection.execute(
        reclusterings.insert().values(
            uid=recluster.uid,
            table_uid=recluster.table_uid,
            run=recluster.run,
            moved_at=recluster.planned_at,
            how=recluster.how.value,
            why=recluster.why,
            base_version=recluster.base_version,
            planned_bytes=recluster.planned_bytes,
            cube_bytes=recluster.cube_bytes,
            depth_before=recluster.depth_before,
            state=recluster.state.value,
        )
    )
    return recluster


def find_recluster(connection: sa.Connection, table_uid: str, run: str) -> Recluster | None:
    """The reclustering that the run has planned for the table; None if it has none."""
    query = sa.select(reclusterings).where(_of.table_uid == table_uid, _of.run == run)
    row = connection.execute(query).mappings().first()
    return None if row is None else _of_row(row)


def end_recluster(connection: sa.Connection, ended: Recluster) -> bool:
    """The reclustering has ended as `ended` says; True if it had not ended well before."""
    standing = reclusterings.update().where(_of.uid == ended.uid, _of.state != ReclusterState.DONE.value)
    values: dict[str, Any] = {
        "state": ended.state.value,
        "bytes": ended.bytes,
        "files_removed": ended.files_removed,
        "files_added": ended.files_added,
        "depth_after": ended.depth_after,
        "seconds": ended.seconds,
        "version": ended.version,
        "ended_at": ended.ended_at,
        "error": ended.error,
    }
    return connection.execute(standing.values(**values)).rowcount == 1


def history(connection: sa.Connection, table_uid: str, limit: int) -> tuple[Recluster, ...]:
    """The newest reclusterings of the table, newest first."""
    query = sa.select(reclusterings).where(_of.table_uid == table_uid).order_by(_of.id.desc()).limit(limit)
    return tuple(_of_row(row) for row in connection.execute(query).mappings())


def failures(connection: sa.Connection, table_uid: str, limit: int) -> tuple[Recluster, ...]:
    """The newest of the table that rewrote nothing because of an error or a conflict, newest first."""
    states = (ReclusterState.FAILED.value, ReclusterState.LEFT.value)
    query = sa.select(reclusterings).where(_of.table_uid == table_uid, _of.state.in_(states))
    found = connection.execute(query.order_by(_of.id.desc()).limit(limit)).mappings()
    return tuple(_of_row(row) for row in found)


def bytes_since(connection: sa.Connection, table_uid: str, since: datetime) -> int:
    """The bytes that reclusterings of the table have rewritten since then."""
    total = sa.select(sa.func.sum(_of.bytes)).where(_of.table_uid == table_uid, _of.ended_at > since)
    return int(connection.execute(total).scalar() or 0)


def drop_reclusterings(connection: sa.Connection, before: datetime, after: Cursor | None, most: int) -> Step:
    """Reclusterings that later ones of the same table have followed."""
    return drop_by_number(connection, reclusterings, _of.table_uid, before, after, most)


def _of_row(row: sa.RowMapping) -> Recluster:
    return Recluster(
        uid=row["uid"],
        table_uid=row["table_uid"],
        run=row["run"],
        planned_at=row["moved_at"],
        how=How(row["how"]),
        why=row["why"],
        base_version=row["base_version"],
        planned_bytes=row["planned_bytes"],
        cube_bytes=row["cube_bytes"],
        depth_before=row["depth_before"],
        state=ReclusterState(row["state"]),
        bytes=row["bytes"],
        files_removed=row["files_removed"],
        files_added=row["files_added"],
        depth_after=row["depth_after"],
        seconds=row["seconds"],
        version=row["version"],
        ended_at=row["ended_at"],
        error=row["error"],
    )
