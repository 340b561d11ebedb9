"""Looks at the logs of objects, as the store keeps them: whose turn is next, and whose look is too old.

After a restart, looks so continue where they ended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import sqlalchemy as sa

from tidemark.control.object_kinds import KINDS, kind_named
from tidemark.control.object_list import ObjectsWish, live
from tidemark.control.object_needs import Key
from tidemark.control.objects import portions
from tidemark.control.schema import looks, objects

__all__ = ["NEVER", "looked_kinds", "not_looked_at", "note_looks", "note_turns", "turns_of"]

NEVER = datetime(1, 1, 1, tzinfo=UTC)
"""The last turn of an object that had none."""

_of = looks.c
_BESIDE = objects.outerjoin(looks, (_of.kind == objects.c.kind) & (_of.uid == objects.c.uid))


def looked_kinds() -> tuple[str, ...]:
    """The kinds whose state is in logs. The store knows all of the others."""
    return tuple(kind for kind in KINDS if kind_named(kind).look is not None)


def turns_of(connection: sa.Connection) -> Mapping[Key, datetime]:
    """Every living object, with the time of its last turn or NEVER. One query."""
    query = sa.select(objects.c.kind, objects.c.uid, _of.turn_at).select_from(_BESIDE).where(*live(ObjectsWish()))
    return {(kind, uid): at or NEVER for kind, uid, at in connection.execute(query)}


def note_turns(connection: sa.Connection, keys: Sequence[Key], at: datetime) -> None:
    """These objects have their turn: their next one is after all others'. A second time moves it only forward."""
    for kind, uids in _by_kind(keys):
        mine = _mine(kind, uids)
        there = set(connection.execute(sa.select(_of.uid).where(mine)).scalars())
        connection.execute(looks.update().where(mine, _is_before(_of.turn_at, at)).values(turn_at=at))
        new = [{"kind": kind, "uid": uid, "turn_at": at} for uid in uids if uid not in there]
        if new:
            connection.execute(looks.insert(), new)


def note_looks(connection: sa.Connection, looked: Sequence[Key], waiting: Sequence[Key], at: datetime) -> None:
    """The logs of `looked` have answered. Objects that are `waiting` had no turn in their round. They get the place
    of their last look back; without one, the first place. A second time changes nothing.
    """
    for kind, uids in _by_kind(looked):
        connection.execute(looks.update().where(_mine(kind, uids), _is_before(_of.looked_at, at)).values(looked_at=at))
    for kind, uids in _by_kind(waiting):
        connection.execute(looks.update().where(_mine(kind, uids)).values(turn_at=_of.looked_at))


def not_looked_at(connection: sa.Connection, before: datetime) -> Mapping[str, int]:
    """How many living objects have had no answer of their logs since then, by kind. One query."""
    kinds = looked_kinds()
    query = (
        sa.select(objects.c.kind, sa.func.count())
        .select_from(_BESIDE)
        .where(*live(ObjectsWish()), objects.c.kind.in_(kinds), _is_before(_of.looked_at, before))
        .group_by(objects.c.kind)
    )
    found = {kind: int(count) for kind, count in connection.execute(query)}
    return {kind: found.get(kind, 0) for kind in kinds}


def _is_before(column: sa.ColumnElement[datetime], at: datetime) -> sa.ColumnElement[bool]:
    return column.is_(None) | (column < at)


def _mine(kind: str, uids: Sequence[str]) -> sa.ColumnElement[bool]:
    return (_of.kind == kind) & _of.uid.in_(uids)


def _by_kind(keys: Collection[Key]) -> Iterator[tuple[str, Sequence[str]]]:
    for kind in sorted({kind for kind, _ in keys}):
        for uids in portions(sorted(uid for of, uid in keys if of == kind)):
            yield kind, uids
