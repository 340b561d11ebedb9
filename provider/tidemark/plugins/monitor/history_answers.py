"""The answer of the route of histories: for each part its fields, its charts and its points. Times are UTC."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from tidemark.control.object_histories import (
    WITHOUT,
    Chart,
    Field,
    HistoryPart,
    Point,
    ShownPart,
    Unit,
    looked_history,
)
from tidemark.control.object_list import ShownObject
from tidemark.control.sentences import one_text
from tidemark.plugins.monitor.actors import Actor, actor
from tidemark.plugins.monitor.owned import OF_OTHERS, actor_for_reader, is_of_others
from tidemark.plugins.monitor.replication_answers import FOR_OTHERS
from tidemark.plugins.monitor.status_cache import Looks, NotYet, Unreadable

__all__ = ["HistoryAnswer", "KeptHistory", "PartAnswer", "history_answer", "part_answer", "with_look"]


@dataclass(frozen=True)
class FieldAnswer:
    """A figure that points have. `unit`: time, number, version, rows, bytes, seconds, text, texts or run.
    `private`: only readers of the DAG of the point's run, or of the DAGs that own the object, see its text.
    """

    name: str
    words: str
    unit: str
    private: bool


@dataclass(frozen=True)
class ChartAnswer:
    """A chart of some fields over `at`. `shape`: line, steps, bars or tree."""

    name: str
    title: str
    words: str
    fields: tuple[str, ...]
    shape: str


@dataclass(frozen=True)
class PartAnswer:
    """A part of the history. `points`: the newest first, each by the names of the fields; a run is an actor.
    `cursor`: for the points that follow; None if there are none. `newer`: for the newer points before these; None on
    the newest ones. `total`: how many there are in all; None if they are not counted.
    """

    name: str
    words: str
    fields: tuple[FieldAnswer, ...]
    charts: tuple[ChartAnswer, ...]
    points: tuple[Mapping[str, Any], ...]
    cursor: str | None
    newer: str | None
    total: int | None


@dataclass(frozen=True)
class HistoryAnswer:
    """The history of an object. `view`: the address of the object's own view. `elsewhere`: why the control store has no
    parts. `replications`: how many there are beside it. `looked_at`: the time of the look at the lake, if that has the
    history. `not_looked_at`: 1 until the first look has ended.
    """

    connection: str
    connections: tuple[str, ...]
    now: datetime
    kind: str
    uid: str
    name: str
    view: Mapping[str, str] | None
    elsewhere: str | None
    parts: tuple[PartAnswer, ...]
    replications: int
    looked_at: datetime | None
    not_looked_at: int


@dataclass(frozen=True)
class KeptHistory:
    """All that the store has for the answer, as it was at one moment, and what a look has added. `trouble`: why the
    lake has not told it. `owners`: the DAGs that own the objects which points are of, by kind and uid.
    """

    connection: str
    one: ShownObject
    parts: tuple[ShownPart, ...]
    replications: int
    owners: Mapping[tuple[str, str], str | None]
    looked_at: datetime | None = None
    not_looked_at: int = 0
    trouble: str | None = None


def with_look(kept: KeptHistory, looks: Looks, at: datetime | None, limit: int) -> KeptHistory:
    """The same with the parts that the lake has."""
    (answer,) = looks.answers.values()
    looked = looked_history(kept.one.kind)
    if isinstance(answer, Unreadable):
        return replace(kept, looked_at=at, trouble=answer.words)
    if isinstance(answer, NotYet) or looked is None:
        return replace(kept, not_looked_at=looks.missing)
    return replace(kept, parts=looked.parts(answer, limit), looked_at=at)


def history_answer(
    kept: KeptHistory, connections: tuple[str, ...], now: datetime, readable: Collection[str]
) -> HistoryAnswer:
    """The history as that reader may see it."""
    one = kept.one
    return HistoryAnswer(
        connection=kept.connection,
        connections=connections,
        now=now,
        kind=one.kind,
        uid=one.uid,
        name=one.name,
        view=one.view,
        elsewhere=one_text(WITHOUT.get(one.kind), kept.trouble),
        parts=tuple(part_answer(part, one.owner_dag, kept.owners, readable) for part in kept.parts),
        replications=kept.replications,
        looked_at=kept.looked_at,
        not_looked_at=kept.not_looked_at,
    )


def part_answer(
    shown: ShownPart, owner: str | None, owners: Mapping[tuple[str, str], str | None], readable: Collection[str]
) -> PartAnswer:
    """The part as that reader may see it. `owner`: the DAG that owns the object; `owners`: see KeptHistory."""
    part = shown.part
    return PartAnswer(
        name=part.name,
        words=part.words,
        fields=tuple(_field(field) for field in part.fields),
        charts=tuple(_chart(chart) for chart in part.charts),
        points=tuple(
            _point(part, point, (owner, None if point.of is None else owners.get(point.of)), readable)
            for point in shown.points
        ),
        cursor=shown.cursor,
        newer=shown.newer,
        total=shown.total,
    )


def _field(field: Field) -> FieldAnswer:
    return FieldAnswer(field.name, field.words, field.unit.value, field.private or field.owned)


def _chart(chart: Chart) -> ChartAnswer:
    return ChartAnswer(chart.name, chart.title, chart.words, chart.fields, chart.shape.value)


def _point(
    part: HistoryPart, point: Point, owners: tuple[str | None, str | None], readable: Collection[str]
) -> Mapping[str, Any]:
    of_others = is_of_others(owners, readable)
    runs = {
        field.name: _actor(point.values.get(field.name), readable, hidden=field.owned and of_others)
        for field in part.fields
        if field.unit is Unit.RUN
    }
    of_hidden_run = any(one is None or one.kind == "hidden" for one in runs.values())
    hidden = {field.name: OF_OTHERS for field in part.fields if field.owned and of_others}
    hidden |= {field.name: FOR_OTHERS for field in part.fields if field.private and of_hidden_run}
    return {field.name: _value(field, point, runs, hidden.get(field.name)) for field in part.fields}


def _value(field: Field, point: Point, runs: Mapping[str, Actor | None], hidden: str | None) -> Any:
    if field.name in runs:
        found = runs[field.name]
        return None if found is None else {name: said for name, said in asdict(found).items() if said is not None}
    value = point.values.get(field.name)
    return value if hidden is None or value is None else hidden


def _actor(said: str | None, readable: Collection[str], *, hidden: bool) -> Actor | None:
    return None if said is None else actor_for_reader(actor(said, readable), hidden=hidden)
