"""The tasks of a DAG, of a run or of one task, and the objects that they touched or own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from tidemark.control.object_kinds import KINDS, kind_named
from tidemark.control.object_list import URGENCY, ObjectsWish, live
from tidemark.control.run_keys import RunPart, Touch
from tidemark.control.schema import objects

__all__ = ["Owned", "owned_by", "touched_by"]

Key = tuple[str, str]
_of = objects.c


@dataclass(frozen=True)
class Owned:
    """Kind and uid of the live objects that a DAG owns, the worst first. `total`: how many there are in all."""

    keys: tuple[Key, ...]
    total: int


def owned_by(connection: sa.Connection, dag_id: str, *, most: int) -> Owned:
    """The objects that a run of the DAG created, or wrote last. Two queries."""
    own = (*live(ObjectsWish()), _of.owner_dag == dag_id)
    total = int(connection.execute(sa.select(sa.func.count()).select_from(objects).where(*own)).scalar_one())
    query = sa.select(_of.kind, _of.uid).where(*own).order_by(URGENCY, _of.kind, _of.folded_name, _of.uid).limit(most)
    return Owned(tuple((row.kind, row.uid) for row in connection.execute(query)), total)


def touched_by(connection: sa.Connection, part: RunPart) -> Mapping[Key, Touch]:
    """Kind and uid of each object that the tasks touched, with what they did and why. One query for each kind that
    keeps its runs. Objects that have ended since may be among them.
    """
    return {
        (kind, uid): touch for kind in KINDS for uid, touch in kind_named(kind).touched_by(connection, part).items()
    }
