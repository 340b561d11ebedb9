"""One act on an object, with what it means for the write that may be under way."""

from __future__ import annotations

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.replication.model.replication import Actor, ReplicatedObject
from tidemark.replication.planning.lifecycle import ObjectAct, object_leads_to
from tidemark.replication.store import object_writes, replicated_objects
from tidemark.replication.store.object_writes import WriteKind, WriteState

__all__ = ["CUT_OFF", "transition_object"]

CUT_OFF = "a backfill of it was cut off, and may have written to the target; backfill it again"


def transition_object(
    connection: sa.Connection,
    store: ControlStore,
    one: ReplicatedObject,
    act: ObjectAct,
    *,
    by: Actor,
    give_up: bool,
    needs_backfill: str | None = None,
    problem: str | None = None,
    called: str | None = None,
    reason: str | None = None,
) -> None:
    """Do the act where the state has an entry for it; else nothing.

    `give_up`: what an open write answers counts for nothing. Whether an abandoned backfill had written to its target
    cannot be known. So a target that has something needs another backfill: it may show something newer than the store
    knows. `called`: the act's name in the history. `reason`: `problem` was met now; the name of its error's class.
    """
    to, at = object_leads_to(one.state, act), store.clock()
    if to is None:
        return
    write = object_writes.open_one(connection, one.uid) if give_up else None
    if write is not None:
        object_writes.close(connection, write, WriteState.GIVEN_UP, at=at)
    cut_off = write is not None and write.kind is WriteKind.BACKFILL and one.applied is not None
    needed = needs_backfill or (CUT_OFF if cut_off else None)
    replicated_objects.transition(
        connection, one, called or act.value, to, at=at, by=by, needs_backfill=needed, problem=problem, reason=reason
    )
