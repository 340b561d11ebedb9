"""The data that the routes of replications need from the store; no source is asked."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from tidemark.control.cursors import Part
from tidemark.control.object_list import owner_dags
from tidemark.errors import ReplicationNotFound
from tidemark.plugins.monitor.connections import MonitoredConnection, connection_ids
from tidemark.plugins.monitor.replication_answers import (
    ReplicationDetails,
    ReplicationsAnswer,
    error_answer,
    moved_keys,
    object_answer,
    replication_answer,
    replication_transition_answer,
)
from tidemark.replication.worker.errors import replication_errors
from tidemark.replication.worker.object_parts import part_of_objects
from tidemark.replication.worker.status import DescribedPart, describe, describe_part, history

__all__ = ["REPLICATION_ERRORS", "REPLICATION_MOVES", "ObjectsWish", "replication_details", "replications_answer"]

REPLICATION_MOVES = 50
REPLICATION_ERRORS = 20


@dataclass(frozen=True)
class ObjectsWish:
    """The part of a replication's objects that is asked for."""

    search: str
    part: Part


def replications_answer(
    monitored: MonitoredConnection, part: Part, *, now: datetime, readable: Collection[str]
) -> ReplicationsAnswer:
    """A page of the replications, each as a whole. Raises StoreError, CursorInvalid."""
    found = DescribedPart(0, (), None) if monitored.store is None else describe_part(monitored.store, part)
    return ReplicationsAnswer(
        connection=monitored.conn_id,
        connections=connection_ids(),
        store="absent" if monitored.store is None else "ready",
        now=now,
        total=found.total,
        limit=part.limit,
        offset=part.offset,
        cursor=found.cursor,
        replications=tuple(replication_answer(one, readable) for one in found.replications),
    )


def replication_details(
    monitored: MonitoredConnection, name: str, wish: ObjectsWish, *, now: datetime, readable: Collection[str]
) -> ReplicationDetails:
    """The replication of that name, in any case. Raises ReplicationNotFound, StoreError."""
    if monitored.store is None:
        raise ReplicationNotFound(replication=name, known="none")
    status = describe(monitored.store, name)
    moves = history(monitored.store, name, limit=REPLICATION_MOVES + 1)
    errors = replication_errors(monitored.store, name, limit=REPLICATION_ERRORS + 1)
    owners = monitored.store.read(lambda c: owner_dags(c, (key for move in moves for key in moved_keys(move))))
    replication = status.replication
    names = status.names
    total, shown, cursor = part_of_objects(status.objects, wish.search, wish.part)
    return ReplicationDetails(
        connection=monitored.conn_id,
        now=now,
        replication=replication_answer(status, readable),
        target=replication.options.target,
        mode=replication.options.mode.value,
        event_log=replication.event_log,
        slot=replication.slot,
        publication=replication.publication,
        created_at=replication.created_at,
        total=total,
        limit=wish.part.limit,
        offset=wish.part.offset,
        cursor=cursor,
        objects=tuple(object_answer(one, status, readable) for one in shown),
        moves=tuple(replication_transition_answer(one, names, readable, owners) for one in moves[:REPLICATION_MOVES]),
        older_moves=len(moves) > REPLICATION_MOVES,
        errors=tuple(error_answer(one, status, readable) for one in errors[:REPLICATION_ERRORS]),
        older_errors=len(errors) > REPLICATION_ERRORS,
    )
