"""Objects without a new event: most of a thousand tables, in most runs.

Their positions move on together, so that a quiet object costs a run no statement of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.replication.model.replication import ReplicatedObject
from tidemark.replication.planning.lifecycle import applies, has_all, why_not_applied
from tidemark.replication.store import object_writes, replicated_objects, replications
from tidemark.replication.store.replicated_objects import StoredObject

__all__ = ["move_quiet"]


def move_quiet(store: ControlStore, object_uids: Sequence[str]) -> frozenset[str]:
    """Uids of the objects that have everything that was captured. Those without new events have moved on.

    Objects with a write that is open, or may be taken up, are not among them. Nor are those that cannot be applied. A
    second run moves nothing.
    """

    def move(connection: sa.Connection) -> frozenset[str]:
        of_replication = defaultdict[str, list[StoredObject]](list)
        for stored in replicated_objects.of_uids(connection, object_uids):
            of_replication[stored.object.replication_uid].append(stored)
        moved = (_moved(connection, uid, objects) for uid, objects in of_replication.items())
        return frozenset(one for uids in moved for one in uids)

    return store.write(move)


def _moved(connection: sa.Connection, replication_uid: str, objects: Sequence[StoredObject]) -> frozenset[str]:
    found = replications.by_uid(connection, replication_uid)
    captured = found.replication.captured
    if found.dropping or not applies(found.replication.state) or captured is None:
        return frozenset()
    unsettled = object_writes.unsettled(connection, replication_uid)
    can = [one for one in objects if one.object.uid not in unsettled and why_not_applied(one.object) is None]
    done = [one.object for one in can if has_all(one.object, captured)]
    stand = [one.object for one in can if not has_all(one.object, captured) and _is_quiet(one)]
    replicated_objects.move_on(connection, stand, captured, shows=found.replication.captured_at)
    return frozenset(one.uid for one in (*done, *stand))


def _is_quiet(stored: StoredObject) -> bool:
    one: ReplicatedObject = stored.object
    return one.applied is not None and (stored.changed_until is None or stored.changed_until <= one.applied)
