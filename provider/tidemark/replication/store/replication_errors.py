"""The errors of replications in the store: equal ones are counted."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.replication.model.recorded_errors import RecordedError
from tidemark.replication.model.replication import Actor, ReplicatedObject
from tidemark.replication.store.schema import replicated_objects, replication_errors

__all__ = ["MOST", "drop", "keep", "keep_of", "of_replication"]

MOST = 1_000  # of a replication
_of = replication_errors.c


def keep(
    connection: sa.Connection,
    replication_uid: str,
    object_uid: str | None,
    *,
    reason: str,
    message: str,
    at: datetime,
    by: Actor,
) -> None:
    """Add an error, or count one with the same object, reason and message. `message` has no secrets any more.

    A replication has `MOST` errors at most. Another one then takes the place of the error that was not seen for
    longest.
    """
    fingerprint = _fingerprint(object_uid, reason, message)
    own = (_of.replication_uid == replication_uid) & (_of.fingerprint == fingerprint)
    again = {"occurrences": _of.occurrences + 1, "last_seen_at": at, "run": by.run}
    if connection.execute(replication_errors.update().where(own).values(again)).rowcount:
        return
    values: dict[str, Any] = {
        "object_uid": object_uid,
        "reason": reason,
        "message": message,
        "fingerprint": fingerprint,
        "first_seen_at": at,
        "last_seen_at": at,
        "occurrences": 1,
        "run": by.run,
    }
    full = _oldest_of_many(connection, replication_uid)
    if full is None:
        connection.execute(replication_errors.insert().values(replication_uid=replication_uid, **values))
    else:
        connection.execute(replication_errors.update().where(_of.id == full).values(values))


def keep_of(
    connection: sa.Connection, one: ReplicatedObject, *, reason: str, message: str, at: datetime, by: Actor
) -> None:
    """`keep` for an error of an object."""
    keep(connection, one.replication_uid, one.uid, reason=reason, message=message, at=at, by=by)


def of_replication(
    connection: sa.Connection, replication_uid: str, *, object_uid: str | None = None, limit: int
) -> tuple[RecordedError, ...]:
    """The errors that were seen last, newest first; of one object, if it is given."""
    query = (
        sa.select(replication_errors, replicated_objects.c.schema_name, replicated_objects.c.table_name)
        .outerjoin(replicated_objects, replicated_objects.c.uid == _of.object_uid)
        .where(_of.replication_uid == replication_uid)
        .order_by(_of.last_seen_at.desc(), _of.id.desc())
        .limit(limit)
    )
    if object_uid is not None:
        query = query.where(_of.object_uid == object_uid)
    return tuple(_recorded(row) for row in connection.execute(query).mappings())


def drop(connection: sa.Connection, replication_uid: str) -> None:
    """The replication ends, and its errors with it."""
    connection.execute(replication_errors.delete().where(_of.replication_uid == replication_uid))


def _fingerprint(object_uid: str | None, reason: str, message: str) -> str:
    return hashlib.sha256("\0".join((object_uid or "", reason, message)).encode()).hexdigest()


def _oldest_of_many(connection: sa.Connection, replication_uid: str) -> int | None:
    """The id of the error that was not seen for longest; None if there is room for another."""
    own = _of.replication_uid == replication_uid
    found = connection.execute(sa.select(sa.func.count()).select_from(replication_errors).where(own)).scalar_one()
    if found < MOST:
        return None
    oldest = sa.select(_of.id).where(own).order_by(_of.last_seen_at, _of.id).limit(1)
    return int(connection.execute(oldest).scalar_one())


def _recorded(row: Mapping[str, Any] | sa.RowMapping) -> RecordedError:
    name = None if row["schema_name"] is None else f"{row['schema_name']}.{row['table_name']}"
    return RecordedError(
        object=name or row["object_uid"],
        reason=row["reason"],
        message=row["message"],
        first_seen=row["first_seen_at"],
        last_seen=row["last_seen_at"],
        count=row["occurrences"],
        object_uid=row["object_uid"],
        run=row["run"],
    )
