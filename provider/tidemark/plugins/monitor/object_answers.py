"""What the route of all objects answers, and how it is made of the table of objects. Times are UTC."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from tidemark.control.object_list import ObjectOrder, ObjectsPage, ObjectsWish, ShownObject, count_kinds, page
from tidemark.plugins.monitor.places import Place, connection_ids
from tidemark.plugins.monitor.replication_answers import FOR_OTHERS

__all__ = ["AnyObjectAnswer", "AnyObjectsAnswer", "ObjectsPart", "objects_answer"]


@dataclass(frozen=True)
class AnyObjectAnswer:
    """One object of any kind. `state`: in its subject's word. `severity`: failed, warning, waiting or ok. `owner`: the
    DAG that created or wrote it last; left out for those who may not read that DAG. `problem`: for those who may read
    the DAGs of the runs that met it, else that there is one. `view`: the address of its own view on the page.
    """

    kind: str
    uid: str
    name: str
    state: str
    severity: str
    since: datetime
    owner: str | None
    lag_seconds: float | None
    lag_amount: int | None
    lag_unit: str | None
    problem: str | None
    view: Mapping[str, str] | None


@dataclass(frozen=True)
class AnyObjectsAnswer:
    """One page of objects. `store`: `absent` where no task has made the control store yet. `kinds`: how many objects of
    each kind there are, whatever is asked for.
    """

    connection: str
    connections: tuple[str, ...]
    store: Literal["ready", "absent"]
    now: datetime
    total: int
    limit: int
    offset: int
    objects: tuple[AnyObjectAnswer, ...]
    kinds: Mapping[str, int]


@dataclass(frozen=True)
class ObjectsPart:
    """Which objects are asked for, in which order, and which part of them."""

    wish: ObjectsWish
    sort: ObjectOrder
    descending: bool
    limit: int
    offset: int


def objects_answer(place: Place, part: ObjectsPart, *, now: datetime, readable: Collection[str]) -> AnyObjectsAnswer:
    """One look at the control store; the lake is not asked. Raises StoreError."""
    found, kinds = _kept(place, part, now)
    return AnyObjectsAnswer(
        connection=place.conn_id,
        connections=connection_ids(),
        store="absent" if place.store is None else "ready",
        now=now,
        total=found.total,
        limit=part.limit,
        offset=part.offset,
        objects=tuple(_answer(one, readable) for one in found.objects),
        kinds=kinds,
    )


def _kept(place: Place, part: ObjectsPart, now: datetime) -> tuple[ObjectsPage, Mapping[str, int]]:
    if place.store is None:
        return ObjectsPage(0, ()), {}
    return place.store.read(
        lambda connection: (
            page(
                connection,
                part.wish,
                sort=part.sort,
                descending=part.descending,
                limit=part.limit,
                offset=part.offset,
                now=now,
            ),
            count_kinds(connection),
        )
    )


def _answer(one: ShownObject, readable: Collection[str]) -> AnyObjectAnswer:
    return AnyObjectAnswer(
        kind=one.kind,
        uid=one.uid,
        name=one.name,
        state=one.state,
        severity=one.severity.value,
        since=one.since,
        owner=one.owner_dag if one.owner_dag in readable else None,
        lag_seconds=one.lag_seconds,
        lag_amount=one.lag_amount,
        lag_unit=one.lag_unit,
        problem=_problem(one, readable),
        view=one.view,
    )


def _problem(one: ShownObject, readable: Collection[str]) -> str | None:
    """A lag that is overdue was met by no run, so every reader may know."""
    if one.problem is None:
        return one.overdue
    shown = bool(one.problem_dags) and all(dag in readable for dag in one.problem_dags)
    return one.problem if shown else FOR_OTHERS
