"""The answer of the route of all objects, made of the table of objects and of the logs of streams. Times are UTC."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa

from tidemark.control.cursors import Part
from tidemark.control.object_list import ObjectOrder, ObjectsPage, ObjectsWish, ShownObject, count_kinds, page
from tidemark.plugins.monitor.connections import MonitoredConnection, connection_ids
from tidemark.plugins.monitor.gate import Gate
from tidemark.plugins.monitor.reading import looked_at
from tidemark.plugins.monitor.replication_answers import FOR_OTHERS
from tidemark.plugins.monitor.status_cache import NotYet, Unreadable
from tidemark.plugins.monitor.watch import Watch
from tidemark.streams.worker.object_states import Seen, judged, questions_behind
from tidemark.streams.worker.questions import LogQuestion

__all__ = ["AnyObjectAnswer", "AnyObjectsAnswer", "ObjectsPart", "any_object_answer", "for_reader", "objects_answer"]


@dataclass(frozen=True)
class AnyObjectAnswer:
    """One object of any kind. `state`: in its subject's word. `severity`: failed, warning, waiting or ok. `since`: of
    the state; None if only a log tells it. `owner`: the DAG that created or wrote it last; left out for those who may
    not read that DAG. `problem`: its text for those who may read the DAGs of the runs that met it, else that there is
    one. It also has what the log says. `view`: the address of its own view on the page.
    """

    kind: str
    uid: str
    name: str
    state: str
    severity: str
    since: datetime | None
    owner: str | None
    lag_seconds: float | None
    lag_amount: int | None
    lag_unit: str | None
    problem: str | None
    view: Mapping[str, str] | None


@dataclass(frozen=True)
class AnyObjectsAnswer:
    """One page of objects. `store`: `absent` if no task has made the control store yet. `kinds`: how many objects of
    each kind exist, for any search. `looked_at`: the oldest look at a log of the page; None: no look has ended.
    `not_looked_at`: how many logs have not answered yet. `cursor`: for the page that follows; None on the last one.
    """

    connection: str
    connections: tuple[str, ...]
    store: Literal["ready", "absent"]
    now: datetime
    total: int
    limit: int
    offset: int
    cursor: str | None
    objects: tuple[AnyObjectAnswer, ...]
    kinds: Mapping[str, int]
    looked_at: datetime | None
    not_looked_at: int


@dataclass(frozen=True)
class ObjectsPart:
    """Which objects are asked for, in which order, and which part of them."""

    wish: ObjectsWish
    sort: ObjectOrder
    descending: bool
    part: Part


@dataclass(frozen=True)
class _Kept:
    """All that the store has for the page, as it was at one moment.

    `behind`: questions to logs, by the uids of their objects.
    """

    monitored: MonitoredConnection
    page: ObjectsPage
    kinds: Mapping[str, int]
    behind: Mapping[str, LogQuestion]


async def objects_answer(
    gate: Gate, part: ObjectsPart, *, patience: float, now: datetime, readable: Collection[str]
) -> AnyObjectsAnswer:
    """One look at the store, with what looks in the background have found in logs, and as usual lags. `patience`: how
    long the logs are waited for. Raises StoreError.
    """
    kept = await gate.ask(lambda monitored: _kept(monitored, part, now, gate.watch))
    looks = await gate.status_cache.answers(kept.behind.values(), kept.monitored.tables, patience=patience)
    seen = {uid: _seen(looks.answers[one.uid]) for uid, one in kept.behind.items()}
    found = judged(kept.page.objects, seen, gate.watch.known.usual, now)
    return AnyObjectsAnswer(
        connection=kept.monitored.conn_id,
        connections=connection_ids(),
        store="absent" if kept.monitored.store is None else "ready",
        now=now,
        total=kept.page.total,
        limit=part.part.limit,
        offset=part.part.offset,
        cursor=kept.page.cursor,
        objects=tuple(any_object_answer(one, readable) for one in found),
        kinds=kept.kinds,
        looked_at=looked_at(looks, now),
        not_looked_at=looks.missing,
    )


def _kept(monitored: MonitoredConnection, part: ObjectsPart, now: datetime, watch: Watch) -> _Kept:
    if monitored.store is None:
        return _Kept(monitored, ObjectsPage(0, ()), {}, {})
    how = {name: value for name, value in vars(part).items() if name != "wish"}

    def read(connection: sa.Connection) -> _Kept:
        found = page(connection, part.wish, **how, now=now, late=watch.known.late)
        return _Kept(monitored, found, count_kinds(connection), questions_behind(connection, found.objects))

    kept = monitored.store.read(read)
    watch.wake(monitored.store, monitored.tables)
    return kept


def _seen(status: Any) -> Seen:
    if isinstance(status, NotYet):
        return None
    return status.words if isinstance(status, Unreadable) else status


def any_object_answer(one: ShownObject, readable: Collection[str]) -> AnyObjectAnswer:
    """The object as that reader may see it."""
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
        problem=for_reader(one, readable).trouble,
        view=one.view,
    )


def for_reader(one: ShownObject, readable: Collection[str]) -> ShownObject:
    """The object as the reader may see it. A finding of a look was met by no run, so every reader may know it."""
    shown = bool(one.problem_dags) and all(dag in readable for dag in one.problem_dags)
    return one if shown or one.problem is None else replace(one, problem=FOR_OTHERS)
