"""The list of errors of a replication, as Datastream's FetchStreamErrors answers it."""

from __future__ import annotations

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.replication.model.recorded_errors import RecordedError
from tidemark.replication.store import replicated_objects, replications
from tidemark.replication.store.replication_errors import of_replication

__all__ = ["LIMIT", "replication_errors"]

LIMIT = 100


def replication_errors(
    store: ControlStore, name: str, *, object_name: str | None = None, limit: int = LIMIT
) -> tuple[RecordedError, ...]:
    """The errors of the replication and its objects, the one that was seen last first.

    An error stays in the list when the next run succeeds. `object_name`: `schema.table`, for the errors of this object
    alone. Raises ReplicationNotFound, ObjectNotFound.
    """

    def look(connection: sa.Connection) -> tuple[RecordedError, ...]:
        found = replications.find(connection, name).replication
        uid = None
        if object_name is not None:
            one = replicated_objects.find(connection, found.uid, object_name, replication=found.name)
            uid = one.object.uid
        return of_replication(connection, found.uid, object_uid=uid, limit=limit)

    return store.read(look)
