"""Acts of persons on objects of any kind. Check, act and history are one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

import sqlalchemy as sa

from tidemark.control.act_fields import ActField, Choice, Values, values_of
from tidemark.control.cursors import cursor_after, key_of
from tidemark.control.object_kinds import kind_named, resolved
from tidemark.control.object_list import ShownObject, of_keys
from tidemark.control.object_needs import findings_of
from tidemark.control.object_revisions import ACTED, Facts, differences, facts_of, facts_of_token, token_of
from tidemark.control.schema import acts, objects
from tidemark.control.store import Clock, ControlStore
from tidemark.errors import ActNotOffered, ActTooLate, InvalidArgument, ObjectChanged, ObjectGone

__all__ = [
    "Act",
    "ActStep",
    "ActTools",
    "ActsPart",
    "DoneAct",
    "ObjectAct",
    "OfferedActs",
    "act_on",
    "acts_of",
    "acts_part",
    "newest_acts",
    "offered",
    "offered_now",
]

_LIST = "acts"


@dataclass(frozen=True)
class ActTools:
    """The ways of steps beyond the store. `tables` opens the log of a table. `source` opens the database of a
    replication. `event_log`: the path of the event log of a replication, by its uid. `lake` finds tables by their names
    without a catalog, as `tidemark.change_streams.worker.watching.LakeTables` does. `storage_options`: of the lake.
    """

    tables: Any
    source: Any = None
    event_log: Any = None
    lake: Any = None
    storage_options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ActStep:
    """The facts for a step. `name`: the object's own; `within`: that of the object that it belongs to. `guarded`: the
    store for the one write of the act. It is refused if the object has changed, and keeps who acted and why. All other
    reads and writes of the step use `store`. `values`: a value for each field of the act. A step that changes something
    beyond the store before that write calls `before_change` first. That raises ActTooLate; after it the write is
    never too late.
    """

    store: ControlStore
    guarded: ControlStore
    tools: ActTools
    name: str
    within: str
    who: str
    why: str
    values: Values
    before_change: Callable[[], None]

    @property
    def tables(self) -> Any:
        """Opens the log of a table."""
        return self.tools.tables

    def text(self, name: str) -> str:
        """The value of a field of text, or of a choice."""
        return str(self.values[name])

    def flag(self, name: str) -> bool:
        """The value of a flag."""
        return self.values[name] is True

    def names(self, name: str) -> tuple[str, ...]:
        """The value of a field of names."""
        found = self.values[name]
        return found if isinstance(found, tuple) else ()


@dataclass(frozen=True)
class ObjectAct:
    """An act that a kind offers.

    `words`: the act in a sentence. `loses`: what is lost by it, which is said before a person confirms. `command`: the
    same act on the command line, as in `Advice`. `fits`: whether it is offered, by the words for the object's state and
    by the facts of its revision. `do`: the step, which writes exactly once through `guarded`. `fields`: what a person
    chooses for it. `beyond`: whether the step reaches beyond the store, and so may hang. Only such a step gets tools.
    """

    name: str
    words: str
    loses: str
    command: str
    fits: Callable[[frozenset[str], Facts], bool]
    do: Callable[[ActStep], object]
    fields: tuple[ActField, ...] = ()
    beyond: bool = False


@dataclass(frozen=True)
class Act:
    """A person's decision. `revision`: the token of the object that was shown. `values`: of the act's fields. They are
    unchecked, and one that is left out has its default.
    """

    kind: str
    uid: str
    act: str
    revision: str
    who: str
    why: str
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class DoneAct:
    """An act in the history. `revision`: the facts that were shown; none for a command. `values`: of its fields.
    `owner_dag`: the DAG that owns the object, or owned it last.
    """

    number: int
    kind: str
    uid: str
    name: str
    act: str
    who: str
    why: str
    done_at: datetime
    revision: Mapping[str, str]
    values: Mapping[str, Any] = field(default_factory=dict)
    owner_dag: str | None = None

    @property
    def by_command(self) -> bool:
        """Whether a command did it. `who` is then a user of the operating system, and otherwise one of Airflow."""
        return not self.revision


@dataclass(frozen=True)
class ActsPart:
    """A part of the history of acts. `cursor`: for the part that follows; None on the last one."""

    acts: tuple[DoneAct, ...]
    cursor: str | None


@dataclass(frozen=True)
class OfferedActs:
    """The acts that an object is offered as it is now, each with the choices of its fields, by act and field."""

    shown: ShownObject
    revision: str
    acts: tuple[ObjectAct, ...]
    choices: Mapping[tuple[str, str], tuple[Choice, ...]]


def acts_of(kind: str) -> tuple[ObjectAct, ...]:
    """The acts that the kind offers at all."""
    name = kind_named(kind).acts
    found: tuple[ObjectAct, ...] = () if name is None else resolved(name)
    return found


def offered(kind: str, states: frozenset[str], facts: Facts) -> tuple[ObjectAct, ...]:
    """The acts that an object is offered in these states."""
    return tuple(one for one in acts_of(kind) if one.fits(states, facts))


def offered_now(connection: sa.Connection, kind: str, uid: str, at: datetime) -> OfferedActs:
    """The acts of an object in any state, with its revision. Raises ObjectGone."""
    one, states, facts = _as_it_is(connection, kind, uid, at)
    found = offered(kind, states, facts)
    choices = {
        (act.name, field.name): field.choices_of(connection, uid)
        for act in found
        for field in act.fields
        if field.choices is not None
    }
    return OfferedActs(one, token_of(facts), found, choices)


def act_on(
    store: ControlStore, tools: ActTools, act: Act, *, in_time: Callable[[], bool] = lambda: True
) -> ShownObject:
    """Do the act, if the object has not changed since it was shown, and return the object before it. A second call with
    the same revision is refused, as the first has changed the object. `in_time`: whether somebody still waits for it.
    It is asked last before the act is stored, or before a step changes something beyond the store.

    Raises ObjectGone, ObjectChanged, ActNotOffered, ActTooLate, ActFieldsInvalid, and what the step raises. Raises
    InvalidArgument for an empty reason or a revision that was never shown.
    """
    if not act.why.strip():
        raise InvalidArgument(argument="why", value=act.why, problem="give a reason, which the history keeps")
    shown = facts_of_token(act.revision)
    one, states, now = store.read(lambda connection: _as_it_is(connection, act.kind, act.uid, store.clock()))
    _require_same(one, shown, now)
    fitting = {found.name: found for found in offered(act.kind, states, now)}
    if act.act not in fitting:
        names = ", ".join(fitting) or "nothing"
        raise ActNotOffered(kind=one.kind, name=one.name, act=act.act, state=one.state, offered=names)
    chosen = fitting[act.act]
    values = store.read(lambda connection: values_of(connection, act.act, chosen.fields, act.uid, act.values))
    before = partial(_require_unchanged, act=act, one=one, shown=shown)
    note = partial(_note, act=act, one=one, shown=shown, values=values, clock=store.clock)
    time = _Time(in_time, ActTooLate(act=act.act, kind=one.kind, name=one.name))

    def after(connection: sa.Connection) -> None:
        time.require()
        note(connection)

    given = tools if chosen.beyond else ActTools(None)
    step = ActStep(
        store=store,
        guarded=store.guarded(before, after),
        tools=given,
        name=one.own_name,
        within=one.within or "",
        who=act.who,
        why=act.why.strip(),
        values=values,
        before_change=time.before_change,
    )
    chosen.do(step)
    return one


def newest_acts(
    connection: sa.Connection, *, kind: str | None, uid: str | None, limit: int, before: int | None = None
) -> tuple[DoneAct, ...]:
    """The newest acts, on one object or on all of a kind or of every kind, newest first. `before`: older ones than the
    act of that number.
    """
    owned = (objects.c.kind == acts.c.kind) & (objects.c.uid == acts.c.uid)
    query = (
        sa.select(acts, objects.c.owner_dag)
        .select_from(acts.outerjoin(objects, owned))
        .order_by(acts.c.id.desc())
        .limit(limit)
    )
    if kind is not None:
        query = query.where(acts.c.kind == kind)
    if uid is not None:
        query = query.where(acts.c.uid == uid)
    if before is not None:
        query = query.where(acts.c.id < before)
    return tuple(_done(row) for row in connection.execute(query).mappings())


def acts_part(
    connection: sa.Connection, *, kind: str | None, uid: str | None, limit: int, cursor: str | None
) -> ActsPart:
    """The newest acts, or with the cursor of a part those that follow it. A new act moves no other one.
    Raises InvalidArgument for a limit below 1, and for a text that is no cursor.
    """
    if limit < 1:
        raise InvalidArgument(argument="limit", value=limit, problem="ask for one act at least")
    before = None if cursor is None else key_of(cursor, _LIST, (int,))[0]
    found = newest_acts(connection, kind=kind, uid=uid, limit=limit + 1, before=before)
    return ActsPart(found[:limit], cursor_after(_LIST, (found[limit - 1].number,)) if len(found) > limit else None)


class _Time:
    """Of those who wait for an act. After a change beyond the store an act is never too late."""

    def __init__(self, in_time: Callable[[], bool], late: ActTooLate) -> None:
        self._in_time, self._late, self._changes = in_time, late, False

    def require(self) -> None:
        if not self._changes and not self._in_time():
            raise self._late

    def before_change(self) -> None:
        self.require()
        self._changes = True


def _as_it_is(
    connection: sa.Connection, kind: str, uid: str, at: datetime
) -> tuple[ShownObject, frozenset[str], Facts]:
    found = of_keys(connection, [(kind, uid)], now=at)
    if not found:
        raise ObjectGone(kind=kind, uid=uid)
    finding = findings_of(connection, at).get((kind, uid))
    states = {found[0].state} | (set() if finding is None else {finding.state})
    return found[0], frozenset(states), facts_of(connection, kind, [uid])[uid]


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
    words = {"problem": "it has another problem", ACTED: "somebody has acted on it"}
    return words.get(name) or f"{name} was {shown or 'none'} and is {now or 'none'}"


def _note(connection: sa.Connection, *, act: Act, one: ShownObject, shown: Facts, values: Values, clock: Clock) -> None:
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
            arguments=json.dumps(dict(values), sort_keys=True) if values else None,
        )
    )


def _done(row: sa.RowMapping) -> DoneAct:
    known = {name: row[name] for name in ("kind", "uid", "name", "act", "who", "why", "done_at", "owner_dag")}
    values = {} if row["arguments"] is None else json.loads(row["arguments"])
    return DoneAct(number=row["id"], revision=json.loads(row["revision"]), values=values, **known)
