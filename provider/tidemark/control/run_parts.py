"""The tasks of a DAG, of a run or of one task, and the objects that they touched or own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from tidemark.control.cursors import ListOrder, Ordered, Part
from tidemark.control.object_kinds import KINDS, kind_named
from tidemark.control.object_list import URGENCY, ObjectsWish, live
from tidemark.control.run_keys import RunPart, Touch
from tidemark.control.schema import objects

__all__ = ["OWNED", "Owned", "owned_by", "touched_by"]

OWNED = "objects of a DAG"
"""The name of the list of owned objects in its cursors."""

Key = tuple[str, str]
_of = objects.c
_WORST_FIRST = ListOrder(
    OWNED, (Ordered(URGENCY, int), Ordered(_of.kind, str), Ordered(_of.folded_name, str), Ordered(_of.uid, str))
)


@dataclass(frozen=True)
class Owned:
    """Kind and uid of the live objects that a DAG owns, the worst first. `total`: how many there are in all.
    `cursor`: for the part that follows; None on the last one.
    """

    keys: tuple[Key, ...] = ()
    total: int = 0
    cursor: str | None = None


def owned_by(connection: sa.Connection, dag_id: str, part: Part) -> Owned:
    """That part of the objects that a run of the DAG created, or wrote last. Two queries. Raises CursorInvalid."""
    own = (*live(ObjectsWish()), _of.owner_dag == dag_id)
    total = int(connection.execute(sa.select(sa.func.count()).select_from(objects).where(*own)).scalar_one())
    query = _WORST_FIRST.taken(sa.select(_of.kind, _of.uid, *_WORST_FIRST.key).where(*own), part)
    rows = connection.execute(query).mappings().all()
    keys = tuple((row["kind"], row["uid"]) for row in rows[: part.limit])
    return Owned(keys, total, _WORST_FIRST.cursor(rows, part.limit))


def touched_by(connection: sa.Connection, part: RunPart) -> Mapping[Key, Touch]:
    """Kind and uid of each object that the tasks touched, with what they did and why. One query for each kind that
    keeps its runs. Objects that have ended since may be among them.
    """
    return {
        (kind, uid): touch for kind in KINDS for uid, touch in kind_named(kind).touched_by(connection, part).items()
    }
