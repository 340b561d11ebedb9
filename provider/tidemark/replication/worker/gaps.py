"""Objects that were not captured for a while, though nobody took them out of the replication."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.replication.model.replication import Actor, FoundObject, ObjectState, Replication
from tidemark.replication.planning.lifecycle import ObjectAct
from tidemark.replication.planning.selection import is_backfilled
from tidemark.replication.store import object_writes, replicated_objects
from tidemark.replication.store.object_writes import WriteKind
from tidemark.replication.store.replicated_objects import StoredObject
from tidemark.replication.worker.transitions import transition_object

__all__ = ["mark_copied_ahead", "mark_unpublished", "missed"]

UNCAPTURED = "it was not captured for a while, and its changes of that time are not in the event log"
COPIED_AHEAD = "the source has failed over, and its copy is of a later position than was captured of the former server"
UNPUBLISHED = "its publication lacked it for a while, and its changes of that time are not in the event log"


def mark_unpublished(
    store: ControlStore,
    replication: Replication,
    published: Collection[str],
    selected: Iterable[FoundObject],
    *,
    by: Actor,
) -> None:
    """Mark the objects that are about to be published and are not: `published` and `selected` by their ids in the
    source. To be called before they are: once they are published, nothing tells that they were not. An existing
    publication has an object even while it is unsupported, and not captured. A second run before that marks them again.
    Sources that others have landed publish nothing, and have no such gaps.
    """
    if replication.kind.is_landed:
        return
    supported = {one.source_id for one in selected if one.unsupported is None}
    added, others = supported - set(published), replication.options.publication is not None

    def mark(connection: sa.Connection) -> None:
        for stored in replicated_objects.of_replication(connection, replication.uid):
            one = stored.object
            if not one.selected or one.gone:
                continue
            if one.source_id in added:
                missed(connection, store, replication, stored, UNPUBLISHED, by=by)
            elif others and one.state is ObjectState.UNSUPPORTED and one.source_id in supported:
                missed(connection, store, replication, stored, UNCAPTURED, by=by)

    if added or others:
        store.write(mark)


def mark_copied_ahead(connection: sa.Connection, store: ControlStore, replication: Replication, *, by: Actor) -> None:
    """Another server took over: mark the objects whose copy is of a later position than was captured of the former
    one. So may be a copy under way. It may have rows that the new server does not have, and others that its log brings
    again.
    """
    for stored in replicated_objects.of_replication(connection, replication.uid):
        one, write = stored.object, object_writes.open_one(connection, stored.object.uid)
        copying = write is not None and write.kind is WriteKind.BACKFILL
        ahead = one.applied is not None and replication.captured is not None and one.applied > replication.captured
        if copying or ahead:
            missed(connection, store, replication, stored, COPIED_AHEAD, by=by)


def missed(
    connection: sa.Connection,
    store: ControlStore,
    replication: Replication,
    stored: StoredObject,
    why: str,
    *,
    by: Actor,
) -> None:
    """The target has, or is being given, rows that lack changes which no event log has. So the object needs a backfill,
    which is requested if backfills are done without a request. A copy that is open may be exact at a position before
    the gap, so it does not count. Nothing where there is neither.
    """
    one = stored.object
    write = object_writes.open_one(connection, one.uid)
    copying = write is not None and write.kind is WriteKind.BACKFILL
    if one.applied is None and not copying:
        return
    requested = is_backfilled(replication.options, one.name)
    act = ObjectAct.RESTART if requested else ObjectAct.STOP
    transition_object(connection, store, one, act, by=by, give_up=True, needs_backfill=why, called="missed")
