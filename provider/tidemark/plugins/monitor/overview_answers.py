"""The answers of the routes of the overview and of acts. Times are UTC."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Literal
from urllib.parse import quote

from tidemark.control.act_fields import ActField, Choice, FieldType
from tidemark.control.object_acts import ActsPart, DoneAct, ObjectAct, OfferedActs
from tidemark.control.object_kinds import Advice, kind_named
from tidemark.control.object_list import ShownObject
from tidemark.control.object_needs import REASONS, Key
from tidemark.hooks.advised_commands import commands_for
from tidemark.plugins.monitor.actors import Actor, actor
from tidemark.plugins.monitor.object_answers import for_reader
from tidemark.plugins.monitor.owned import OF_OTHERS, is_of_others
from tidemark.streams.worker.object_needs import Need

__all__ = [
    "ActDoneAnswer",
    "ActsAnswer",
    "NeedAnswer",
    "OfferedAnswer",
    "OverviewAnswer",
    "acts_answer",
    "need_answer",
    "offered_answer",
]


@dataclass(frozen=True)
class ChoiceAnswer:
    """A value that may be chosen, with its words."""

    value: str
    words: str


@dataclass(frozen=True)
class FieldAnswer:
    """A field of an act. `type`: text, flag, names or choice. `option`: the option of the command that takes the same.
    `choices`: those of a choice; empty in the overview.
    """

    name: str
    label: str
    type: FieldType
    help: str
    required: bool
    default: str
    option: str
    choices: tuple[ChoiceAnswer, ...]


@dataclass(frozen=True)
class ActAnswer:
    """An act that the object is offered. `loses`: what is lost by it. `allowed`: the caller may do it here; others have
    the `command`. `fields`: what a person chooses for it.
    """

    name: str
    words: str
    loses: str
    command: str
    allowed: bool
    fields: tuple[FieldAnswer, ...]


@dataclass(frozen=True)
class OfferedAnswer:
    """The acts that an object is offered as it is now, in any state. `revision`: the token that an act hands back."""

    connection: str
    kind: str
    uid: str
    name: str
    state: str
    revision: str
    acts: tuple[ActAnswer, ...]


@dataclass(frozen=True)
class NeedAnswer:
    """One object that needs attention. `need`: failed, warning, behind, behind_usual, locked or stopped; `words`: the
    same for people. `group`: failed, warning or stopped, under which it is counted. `since`: the first time that is
    known; `since_seen`: it is that of the look which found it, so it may be older. `reason`: for those who may read
    the DAGs of the runs that met it. Of an object that a person has stopped it has the person's reason and name, for
    readers of the owner's DAG. `run`: the task that met it last if `run_met`, else the one that touched the object
    last. Its run and its log have `run_path` and `log_path` below Airflow's address. `advice` and `commands`: the way
    out. `dependents`: how many tables and objects get rows from it, directly or not; 1,000 means 1,000 or more. That of
    a clustered table or a search optimization is the number of its table. None: lineage has not been read yet, or does
    not know the kind. `lineage`: the address of the object in the view of lineage; None if that does not know the kind.
    `revision`: the token that an act hands back.
    """

    kind: str
    uid: str
    name: str
    need: str
    words: str
    group: str
    state: str
    severity: str
    since: datetime | None
    since_seen: bool
    reason: str
    owner: str | None
    lag_seconds: float | None
    lag_amount: int | None
    lag_unit: str | None
    run: Actor | None
    run_met: bool
    run_path: str | None
    log_path: str | None
    advice: str
    commands: tuple[str, ...]
    view: Mapping[str, str] | None
    dependents: int | None
    lineage: Mapping[str, str] | None
    acts: tuple[ActAnswer, ...]
    revision: str


@dataclass(frozen=True)
class OverviewAnswer:
    """A part of what needs attention, the worst first. `looked_at`: when logs and lags were looked at last, in the
    background; None: not yet. `not_looked_at`: how many objects of these kinds wait for a look, or for the answer
    of their logs. `total`: how many need attention and fit. `counts`: the same by urgency.
    `objects`: how many live, by kind. `cursor`: for the part that follows; None on the last one.
    """

    connection: str
    connections: tuple[str, ...]
    store: Literal["ready", "absent"]
    now: datetime
    looked_at: datetime | None
    total: int
    counts: Mapping[str, int]
    objects: Mapping[str, int]
    not_looked_at: int
    needs: tuple[NeedAnswer, ...]
    cursor: str | None


@dataclass(frozen=True)
class KeptAct:
    """An act in the history. `by`: the page, where `who` is a user of Airflow, or a command, where it is one of the
    operating system. `why`: empty for a command without a reason. `values`: of its fields. Person, reason and values
    are shown to those who may read the DAG that owns the object.
    """

    number: int
    kind: str
    uid: str
    name: str
    act: str
    by: Literal["page", "command"]
    who: str
    why: str
    done_at: datetime
    values: Mapping[str, str | bool | tuple[str, ...]]


@dataclass(frozen=True)
class ActsAnswer:
    """A part of the acts, newest first. `cursor`: for the part that follows; None on the last one."""

    connection: str
    now: datetime
    acts: tuple[KeptAct, ...]
    cursor: str | None


@dataclass(frozen=True)
class ActDoneAnswer:
    """The object after an act, with another uid if the act has replaced it; `revision`: for the next one."""

    kind: str
    uid: str
    act: str
    state: str | None
    revision: str | None


def need_answer(
    need: Need,
    readable: Collection[str],
    may: Callable[[str | None], bool],
    conn_id: str,
    dependents: Mapping[Key, int],
) -> NeedAnswer:
    """The need as that reader may see it."""
    shown = for_reader(need.shown, readable)
    run = None if need.run is None else actor(need.run, readable)
    allowed = may(shown.owner_dag)
    hidden = is_of_others([shown.owner_dag], readable)  # whose run may have stopped it
    told = replace(need, stopped_for=None) if hidden else need
    return NeedAnswer(
        kind=shown.kind,
        uid=shown.uid,
        name=shown.name,
        need=need.need,
        words=REASONS[need.need].words,
        group=REASONS[need.need].group,
        state=shown.state,
        severity=shown.severity.value,
        since=need.since,
        since_seen=need.since_seen,
        reason=told.reason(shown),
        owner=shown.owner_dag if shown.owner_dag in readable else None,
        lag_seconds=shown.lag_seconds,
        lag_amount=shown.lag_amount,
        lag_unit=shown.lag_unit,
        run=run,
        run_met=need.run_met,
        run_path=_run_path(run),
        log_path=_log_path(run),
        advice=need.advice.words,
        commands=commands_for(need.advice, conn_id),
        view=shown.view,
        dependents=dependents.get((shown.kind, shown.uid)),
        lineage=_lineage(shown),
        acts=tuple(_act(one, need.shown, conn_id, allowed=allowed) for one in need.acts),
        revision=need.revision,
    )


def acts_answer(conn_id: str, found: ActsPart, now: datetime, readable: Collection[str]) -> ActsAnswer:
    """The acts as that reader may see them, without the facts of their revisions."""
    return ActsAnswer(conn_id, now, tuple(_kept_act(one, readable) for one in found.acts), found.cursor)


def _kept_act(one: DoneAct, readable: Collection[str]) -> KeptAct:
    names = ("number", "kind", "uid", "name", "act", "who", "why", "done_at", "values")
    told = KeptAct(by="command" if one.by_command else "page", **{name: getattr(one, name) for name in names})
    hidden = is_of_others([one.owner_dag], readable)
    return replace(told, who="", why=OF_OTHERS, values={}) if hidden else told


def offered_answer(found: OfferedActs, conn_id: str, *, allowed: bool) -> OfferedAnswer:
    """The acts with the choices of their fields."""
    shown = found.shown
    acts = tuple(_act(one, shown, conn_id, allowed=allowed, choices=found.choices) for one in found.acts)
    return OfferedAnswer(conn_id, shown.kind, shown.uid, shown.name, shown.state, found.revision, acts)


def _act(
    one: ObjectAct,
    shown: ShownObject,
    conn_id: str,
    *,
    allowed: bool,
    choices: Mapping[tuple[str, str], tuple[Choice, ...]] = MappingProxyType({}),
) -> ActAnswer:
    (command,) = commands_for(Advice("", (one.command,)).of(shown.own_name, shown.within), conn_id)
    fields = tuple(_field(field, choices.get((one.name, field.name), ())) for field in one.fields)
    return ActAnswer(one.name, one.words, one.loses, command, allowed, fields)


def _field(field: ActField, choices: Sequence[Choice]) -> FieldAnswer:
    return FieldAnswer(
        name=field.name,
        label=field.label,
        type=field.type,
        help=field.help,
        required=field.required,
        default=field.default,
        option=field.option,
        choices=tuple(ChoiceAnswer(one.value, one.words) for one in choices),
    )


def _lineage(shown: ShownObject) -> Mapping[str, str] | None:
    if kind_named(shown.kind).ties is None:
        return None
    return {"view": "lineage", "object": f"{shown.kind}/{shown.uid}"}


def _run_path(run: Actor | None) -> str | None:
    if run is None or run.kind != "run":
        return None
    return f"dags/{quote(run.dag_id or '', safe='')}/runs/{quote(run.run_id or '', safe='')}"


def _log_path(run: Actor | None) -> str | None:
    """The task instance, whose first tab is its log."""
    path = _run_path(run)
    if path is None or run is None:
        return None
    mapped = f"/mapped/{run.map_index}" if run.map_index is not None and run.map_index >= 0 else ""
    return f"{path}/tasks/{quote(run.task_id or '', safe='')}{mapped}"
