"""Backfills of consumer groups in the store: each state move by name, with its condition."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.change_streams.model.backfill import Backfill
from tidemark.change_streams.store.schema import backfills, group_partitions

__all__ = ["aim", "finish", "holds", "insert", "lookup"]

_of = backfills.c


def lookup(connection: sa.Connection, group_uid: str, source_id: str) -> Backfill | None:
    """The group's backfill of that table, or None: a question, not a failure."""
    query = sa.select(backfills).where(_of.group_uid == group_uid, _of.source_id == source_id)
    row = connection.execute(query).mappings().first()
    return None if row is None else _backfill(row)


def holds(connection: sa.Connection, group_uid: str) -> bool:
    """Whether a backfill is not done that the group waits for."""
    query = sa.select(_of.source_id).where(_of.group_uid == group_uid, _of.holds, _of.done_at.is_(None)).limit(1)
    return connection.execute(query).first() is not None


def insert(connection: sa.Connection, backfill: Backfill) -> None:
    """A backfill is begun; the group has none of that table yet. It waits for it, unless it has read something."""
    has_read = sa.exists().where(group_partitions.c.group_uid == backfill.group_uid, group_partitions.c.chunks > 0)
    waits = not connection.execute(sa.select(has_read)).scalar_one()
    connection.execute(
        backfills.insert().values(
            group_uid=backfill.group_uid,
            source_id=backfill.source_id,
            target_id=backfill.target_id,
            version=backfill.version,
            holds=waits,
        )
    )


def aim(connection: sa.Connection, group_uid: str, source_id: str, target_id: str) -> None:
    """An open backfill goes into this target."""
    standing = (_of.group_uid == group_uid) & (_of.source_id == source_id) & _of.done_at.is_(None)
    connection.execute(backfills.update().where(standing).values(target_id=target_id))


def finish(connection: sa.Connection, group_uid: str, source_id: str, *, rows: int, at: datetime) -> None:
    """Its rows are in the target; one that is done already stays as it is."""
    standing = (_of.group_uid == group_uid) & (_of.source_id == source_id) & _of.done_at.is_(None)
    connection.execute(backfills.update().where(standing).values(rows=rows, done_at=at))


def _backfill(row: Mapping[str, Any] | sa.RowMapping) -> Backfill:
    return Backfill(
        group_uid=row["group_uid"],
        source_id=row["source_id"],
        target_id=row["target_id"],
        version=row["version"],
        rows=row["rows"],
        done_at=row["done_at"],
    )
