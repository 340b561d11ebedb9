"""Acts of persons on objects of any kind. Check, act and history are one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import sqlalchemy as sa

from tidemark.control.object_kinds import kind_named, resolved
from tidemark.control.object_list import ShownObject, of_keys
from tidemark.control.object_needs import findings_of
from tidemark.control.object_revisions import Facts, differences, facts_of, facts_of_token, token_of
from tidemark.control.schema import acts
from tidemark.control.store import ControlStore
from tidemark.errors import ActNotOffered, InvalidArgument, ObjectChanged, ObjectGone

__all__ = ["Act", "ActStep", "DoneAct", "ObjectAct", "act_on", "acts_of", "newest_acts", "offered"]


@dataclass(frozen=True)
class ActStep:
    """The facts for a step. `name`: the object's own; `within`: that of the object that it belongs to. `guarded`: the
    store for the one write of the act. It is refused if the object has changed, and keeps who acted and why. All other
    reads and writes of the step use `store`. `tables` opens the log of a table.
    """

    store: ControlStore
    guarded: ControlStore
    tables: Any
    name: str
    within: str
    who: str
    why: str


@dataclass(frozen=True)
class ObjectAct:
    """An act that a kind offers.

    `words`: the act in a sentence. `loses`: what is lost by it, which is said before a person confirms. `command`: the
    same act on the command line, as in `Advice`. `fits`: whether it is offered, by the words for the object's state and
    by the facts of its revision. `do`: the step, which writes exactly once through `guarded`.
    """

    name: str
    words: str
    loses: str
    command: str
    fits: Callable[[frozenset[str], Facts], bool]
    do: Callable[[ActStep], object]


@dataclass(frozen=True)
class Act:
    """A person's decision. `revision`: the token of the object that was shown."""

    kind: str
    uid: str
    act: str
    revision: str
    who: str
    why: str


@dataclass(frozen=True)
class DoneAct:
    """An act in the history. `revision`: the facts that were shown."""

    number: int
    kind: str
    uid: str
    name: str
    act: str
    who: str
    why: str
    done_at: datetime
    revision: Mapping[str, str]


def acts_of(kind: str) -> tuple[ObjectAct, ...]:
    """The acts that the kind offers at all."""
    name = kind_named(kind).acts
    found: tuple[ObjectAct, ...] = () if name is None else resolved(name)
    return found


def offered(kind: str, states: frozenset[str], facts: Facts) -> tuple[ObjectAct, ...]:
    """The acts that an object is offered in these states."""
    return tuple(one for one in acts_of(kind) if one.fits(states, facts))


def act_on(store: ControlStore, tables: Any, act: Act) -> None:
    """Do the act, if the object is as it was shown. A second call with the same revision is refused, as the first has
    changed the object.

    Raises ObjectGone, ObjectChanged, ActNotOffered, InvalidArgument for an empty reason or a revision that was never
    shown, and what the step raises.
    """
    if not act.why.strip():
        raise InvalidArgument(argument="why", value=act.why, problem="give a reason, which the history keeps")
    shown = facts_of_token(act.revision)
    one, states, now = store.read(lambda connection: _as_it_is(connection, act, store.clock()))
    _require_same(one, shown, now)
    fitting = {found.name: found for found in offered(act.kind, states, now)}
    if act.act not in fitting:
        names = ", ".join(fitting) or "nothing"
        raise ActNotOffered(kind=one.kind, name=one.name, act=act.act, state=one.state, offered=names)
    before = partial(_require_unchanged, act=act, one=one, shown=shown)
    guarded = store.guarded(before, partial(_note, act=act, one=one, shown=shown, clock=store.clock))
    fitting[act.act].do(ActStep(store, guarded, tables, one.own_name, one.within or "", act.who, act.why.strip()))


def newest_acts(connection: sa.Connection, *, kind: str | None, uid: str | None, limit: int) -> tuple[DoneAct, ...]:
    """The newest acts, on one object or on all of a kind or of every kind, newest first."""
    query = sa.select(acts).order_by(acts.c.id.desc()).limit(limit)
    if kind is not None:
        query = query.where(acts.c.kind == kind)
    if uid is not None:
        query = query.where(acts.c.uid == uid)
    return tuple(_done(row) for row in connection.execute(query).mappings())


def _as_it_is(connection: sa.Connection, act: Act, at: datetime) -> tuple[ShownObject, frozenset[str], Facts]:
    found = of_keys(connection, [(act.kind, act.uid)], now=at)
    if not found:
        raise ObjectGone(kind=act.kind, uid=act.uid)
    finding = findings_of(connection, at).get((act.kind, act.uid))
    states = {found[0].state} | (set() if finding is None else {finding.state})
    return found[0], frozenset(states), facts_of(connection, act.kind, [act.uid])[act.uid]


def _require_unchanged(connection: sa.Connection, *, act: Act, one: ShownObject, shown: Facts) -> None:
    found = facts_of(connection, act.kind, [act.uid])
    if act.uid not in found:
        raise ObjectGone(kind=act.kind, uid=act.uid)
    _require_same(one, shown, found[act.uid])


def _require_same(one: ShownObject, shown: Facts, now: Facts) -> None:
    changed = differences(shown, now)
    if changed:
        words = "; ".join(_said(name, *pair) for name, pair in changed.items())
        raise ObjectChanged(kind=one.kind, name=one.name, words=words, changed=changed, revision=token_of(now))


def _said(name: str, shown: str, now: str) -> str:
    return "it has another problem" if name == "problem" else f"{name} was {shown or 'none'} and is {now or 'none'}"


def _note(
    connection: sa.Connection, *, act: Act, one: ShownObject, shown: Facts, clock: Callable[[], datetime]
) -> None:
    connection.execute(
        acts.insert().values(
            kind=act.kind,
            uid=act.uid,
            name=one.name,
            act=act.act,
            who=act.who,
            why=act.why.strip(),
            done_at=clock(),
            revision=json.dumps(dict(shown), sort_keys=True),
        )
    )


def _done(row: sa.RowMapping) -> DoneAct:
    known = {name: row[name] for name in ("kind", "uid", "name", "act", "who", "why", "done_at")}
    return DoneAct(number=row["id"], revision=json.loads(row["revision"]), **known)
