"""Acts by `airflow tidemark …` in the history of acts, beside those of the page: who did what, and why."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

import sqlalchemy as sa

from tidemark.control.act_fields import Values
from tidemark.control.history import Cursor, Step, next_of
from tidemark.control.object_kinds import kind_named
from tidemark.control.object_list import ObjectsWish, live
from tidemark.control.objects import portions, touched
from tidemark.control.schema import acts, objects
from tidemark.control.store import ControlStore

__all__ = ["CommandAct", "drop_acts", "note_act", "noting"]

_NOT_SHOWN = "{}"  # no person saw facts of the object on the page: so a row is known as that of a command
_of = objects.c


@dataclass(frozen=True)
class CommandAct:
    """An act of a command. `who`: the user of the operating system. `values`: those of the act's fields, and of other
    options that matter. `name`: the full name of the object, if the act touches only what belongs to it.
    """

    kind: str
    act: str
    who: str
    why: str
    values: Values = field(default_factory=dict)
    name: str | None = None


def noting(store: ControlStore, act: CommandAct) -> ControlStore:
    """The same store, whose writes keep the act in their transactions. It is kept of each object of the kind that they
    touch, or of the one that is named. A write that touches nothing keeps nothing, and so does a second run
    that changes nothing. Several writes keep the act once.
    """
    return store.guarded(lambda _: None, partial(_note_touched, act=act, at=store.clock()))


def note_act(store: ControlStore, act: CommandAct, uid: str, name: str) -> None:
    """Keep an act that a job has done on the object, in a transaction of its own. Each call keeps one."""
    at = store.clock()
    store.write(lambda connection: _keep(connection, act, {uid: name}, at))


def drop_acts(connection: sa.Connection, before: datetime, after: Cursor | None, most: int) -> Step:
    """Acts of commands that were done again on the same object: a command of each hour leaves one a year later. Acts on
    the page stay, and so does the newest act of each name, which may be the reason of a stop. A second run finds none.
    """
    of, newer = acts.c, acts.alias("newer")
    found = next_of(connection, sa.select(of.id, of.done_at), (of.id,), after, most)
    ids = [row.id for row in found if row.done_at < before]
    same = (newer.c.kind == of.kind) & (newer.c.uid == of.uid) & (newer.c.act == of.act)
    again = sa.exists().where(same, newer.c.id > of.id)
    going = acts.delete().where(of.id.in_(ids), of.revision == _NOT_SHOWN, again)
    return Step(connection.execute(going).rowcount, (found[-1].id,) if ids and len(found) == most else None)


def _note_touched(connection: sa.Connection, *, act: CommandAct, at: datetime) -> None:
    moved = touched(connection)
    if moved and act.name is not None:
        _keep(connection, act, _named(connection, act.kind, act.name), at)
    elif act.kind in moved:
        _keep(connection, act, _names(connection, act.kind, moved[act.kind]), at)


def _named(connection: sa.Connection, kind: str, name: str) -> Mapping[str, str]:
    query = sa.select(_of.uid, _of.name).where(*live(ObjectsWish(kind=kind)), _of.folded_name == name.casefold())
    return {row.uid: row.name for row in connection.execute(query)}


def _names(connection: sa.Connection, kind: str, uids: Collection[str]) -> Mapping[str, str]:
    """The names by uid. An object that another one of the same name replaces in this transaction is the one that was
    acted on. The table of objects has it until the transaction ends.
    """
    known: dict[str, str] = {}
    new: dict[str, str] = {}
    for some in portions(sorted(uids)):
        query = sa.select(_of.uid, _of.name).where(_of.kind == kind, _of.ended_at.is_(None), _of.uid.in_(some))
        known.update((row.uid, row.name) for row in connection.execute(query))
        new.update((entry.uid, entry.full_name) for entry in kind_named(kind).entries(connection, some))
    taken = {name.casefold() for name in known.values()}
    return known | {uid: name for uid, name in new.items() if uid not in known and name.casefold() not in taken}


def _keep(connection: sa.Connection, act: CommandAct, names: Mapping[str, str], at: datetime) -> None:
    """Insert if absent: an earlier write of the same command may have kept it."""
    kept: set[str] = set()
    for some in portions(sorted(names)):
        same = (acts.c.kind == act.kind) & acts.c.uid.in_(some) & (acts.c.done_at == at) & (acts.c.act == act.act)
        query = sa.select(acts.c.uid).where(same, acts.c.who == act.who)
        kept.update(connection.execute(query).scalars())
    rows: list[dict[str, Any]] = [
        {
            "kind": act.kind,
            "uid": uid,
            "name": name,
            "act": act.act,
            "who": act.who,
            "why": act.why,
            "done_at": at,
            "revision": _NOT_SHOWN,
            "arguments": json.dumps(dict(act.values), sort_keys=True) if act.values else None,
        }
        for uid, name in names.items()
        if uid not in kept
    ]
    if rows:
        connection.execute(acts.insert(), rows)
