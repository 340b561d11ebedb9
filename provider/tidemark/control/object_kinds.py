"""The protocol by which a subject registers its kinds of objects, and the names of those that are registered."""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any

import sqlalchemy as sa

from tidemark.control.run_keys import RunPart, Touch
from tidemark.control.ties import Tie

__all__ = ["KINDS", "Advice", "Finding", "Lag", "ObjectEntry", "ObjectKind", "Severity", "kind_named", "resolved"]


class Severity(StrEnum):
    """How urgent the state of an object is, the worst first. Every subject uses these four."""

    FAILED = "failed"  # it does not do its work
    WARNING = "warning"  # it works, and somebody should look at it
    WAITING = "waiting"  # it has nothing to do until somebody or something begins
    OK = "ok"


@dataclass(frozen=True)
class ObjectEntry:
    """One live object as its subject's own rows have it.

    `state`: in the subject's own word. `within`: the name of the object that it belongs to. `problem`: why it is not
    OK, in words that are redacted again before they are stored. `met_in`: keys of the runs that met the problem, or may
    have. `stopped_for`: the reason that a person gave who stopped it.
    """

    uid: str
    name: str
    state: str
    severity: Severity
    problem: str | None = None
    within: str | None = None
    met_in: tuple[str, ...] = ()
    stopped_for: str | None = None

    @property
    def full_name(self) -> str:
        """Its name among all objects of its kind."""
        return self.name if self.within is None else f"{self.within}/{self.name}"


@dataclass(frozen=True)
class Lag:
    """How far an object is behind its source when it is read.

    `seconds`: the age of the newest state of the source that it is known to have reached. `amount` and `unit`: the same
    in another measure. `overdue`: why somebody should look at that lag.
    """

    seconds: float | None = None
    amount: int | None = None
    unit: str | None = None
    overdue: str | None = None


@dataclass(frozen=True)
class Advice:
    """The way out of a state: what to do, and the commands that do it.

    Commands have `{name}` for the object's own name and `{within}` for that of the object that it belongs to. Words in
    angle brackets are for the reader to replace: a shell refuses a command that still has one.
    """

    words: str
    commands: tuple[str, ...] = ()

    def of(self, name: str, within: str | None) -> Advice:
        """The advice about the object of that name, with its commands as a shell takes them."""
        named = {"name": shlex.quote(name), "within": shlex.quote(within or "")}
        return Advice(self.words, tuple(command.format(**named) for command in self.commands))


@dataclass(frozen=True)
class Finding:
    """A fact that asks for somebody and is no state of the object, such as a lock that was left.

    `state`: the word for it. `since`: when it began. `run`: key of the run that left it.
    """

    state: str
    words: str
    since: datetime | None = None
    run: str | None = None


EntriesOf = Callable[[sa.Connection, Sequence[str]], Sequence[ObjectEntry]]
LagsOf = Callable[[sa.Connection, Sequence[str], datetime], Mapping[str, Lag]]
ViewOf = Callable[[str, str | None], Mapping[str, str]]
FindingsOf = Callable[[sa.Connection, datetime], Mapping[str, Finding]]
MarksOf = Callable[[sa.Connection, Sequence[str]], Mapping[str, Mapping[str, str]]]
TiesOf = Callable[[sa.Connection], Sequence[Tie]]
LastRunsOf = Callable[[sa.Connection, Sequence[str]], Mapping[str, str]]
TouchedBy = Callable[[sa.Connection, RunPart], Mapping[str, Touch]]


@dataclass(frozen=True)
class ObjectKind:
    """The description of one kind of objects by their subject.

    `entries`: the live ones among these uids, from the subject's rows; those that ended are left out. `lags`: name of
    the function that has their lags, `module:function` below `tidemark`; the steps of a worker may have it. `view`: the
    address of an object's view on the page, by its name and `within`; None: there is none. `look`: name of what the
    lake is asked by, a `tidemark.streams.worker.object_states.LakeLook`; None: the store knows all of the state.

    For the overview: `stopped` are the states that a person has to end. `findings` is the name of what finds further
    facts, by uid. `advice` has the way out of each state, and for all others that of `""`. `acts` is the name of the
    acts that a person may do, a tuple of `tidemark.control.object_acts.ObjectAct`. `marks`: further facts of an object,
    by name, that must not have changed since a person saw them. `highs` is the name of what
    tells the highest lags of the past, a `tidemark.control.usual_lags.HighsOf`. None: the store keeps none, or the
    object has a bound of its own.

    For lineage: `ties` names what finds the ties of all objects of the kind. It takes a fixed number of queries.
    `touched` is the name of what finds the objects that tasks touched, by uid, with what they did and why. `last_runs`
    names what finds the key of the task that touched each object last, in a number of queries that is fixed. `stops`:
    the acts that lead to a stopped state, if the entries lack the reason or the person.
    """

    name: str
    entries: EntriesOf
    lags: str
    view: ViewOf | None = None
    look: str | None = None
    stopped: frozenset[str] = frozenset()
    findings: FindingsOf | None = None
    advice: Mapping[str, Advice] = field(default_factory=dict)
    acts: str | None = None
    marks: MarksOf | None = None
    highs: str | None = None
    ties: str | None = None
    touched: str | None = None
    last_runs: str | None = None
    stops: frozenset[str] = frozenset()

    def lags_of(self, connection: sa.Connection, uids: Sequence[str], now: datetime) -> Mapping[str, Lag]:
        """The lag of each of these objects, by uid; objects without a known lag are left out."""
        found: LagsOf = resolved(self.lags)
        return found(connection, uids, now)

    def ties_of(self, connection: sa.Connection) -> Sequence[Tie]:
        """The ties of all objects of the kind; those of ended ones may be among them."""
        if self.ties is None:
            return ()
        found: TiesOf = resolved(self.ties)
        return found(connection)

    def touched_by(self, connection: sa.Connection, part: RunPart) -> Mapping[str, Touch]:
        """The objects of the kind that these tasks touched, by uid, with what they did and why."""
        if self.touched is None:
            return {}
        found: TouchedBy = resolved(self.touched)
        return found(connection, part)

    def last_runs_of(self, connection: sa.Connection, uids: Sequence[str]) -> Mapping[str, str]:
        """The key of the task that touched each of these objects last, by uid, if one is known."""
        if self.last_runs is None:
            return {}
        found: LastRunsOf = resolved(self.last_runs)
        return found(connection, uids)

    def advice_for(self, state: str, name: str, within: str | None) -> Advice:
        """The way out of that state of an object."""
        show = Advice("Look at the object and at the run that wrote it last.", (f"{SHOW} {self.name} {{name}}",))
        found = self.advice.get(state) or self.advice.get("") or show
        whole = name if within is None or found is not show else f"{within}/{name}"
        return found.of(whole, within)


SHOW = "airflow tidemark objects show"

KINDS = {
    "stream": "streams.store.objects:STREAM",
    "change_stream": "change_streams.store.objects:CHANGE_STREAM",
    "consumer_group": "change_streams.store.objects:CONSUMER_GROUP",
    "replication": "replication.store.objects:REPLICATION",
    "replicated_table": "replication.store.objects:REPLICATED_TABLE",
    "landing_table": "channels.store.objects:LANDING_TABLE",
    "pipe": "pipes.store.objects:PIPE",
    "materialized_view": "materialized.store.objects:MATERIALIZED_VIEW",
    "dynamic_table": "materialized.store.objects:DYNAMIC_TABLE",
    "clustered_table": "clustering.store.objects:CLUSTERED_TABLE",
    "search_optimization": "search.store.objects:SEARCH_OPTIMIZATION",
}
"""Kind of object to the `ObjectKind` that a subject registers, below `tidemark`: the store imports no subject."""


@cache
def kind_named(name: str) -> ObjectKind:
    """The registered kind of that name. Raises KeyError."""
    found: ObjectKind = resolved(KINDS[name])
    return found


def resolved(name: str) -> Any:
    """The object that a kind names as `module:attribute` below `tidemark`."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(f"tidemark.{module}"), attribute)
