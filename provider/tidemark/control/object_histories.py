"""The history of each kind of objects: its parts, the figures of each point, and the charts that are drawn of them.

The route, the page and the command show these parts, and no others. The control store has all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from tidemark.control.cursors import Key, cursor_after, key_of
from tidemark.control.object_kinds import resolved
from tidemark.errors import CursorInvalid, InvalidArgument

__all__ = [
    "AT",
    "HISTORIES",
    "LOOKED",
    "MOST",
    "WITHOUT",
    "Chart",
    "Field",
    "HistoryPart",
    "LookedHistory",
    "Point",
    "PointsOf",
    "Portion",
    "Shape",
    "ShownPart",
    "Unit",
    "history_of",
    "lag_at",
    "looked_history",
    "newest_rows",
    "parts_of",
    "seconds_between",
]

MOST = 1000  # points of one portion

HISTORIES = {
    "stream": "streams.worker.histories:STREAM_HISTORY",
    "change_stream": "change_streams.store.histories:CHANGE_STREAM_HISTORY",
    "consumer_group": "change_streams.store.histories:CONSUMER_GROUP_HISTORY",
    "replication": "replication.store.histories:REPLICATION_HISTORY",
    "replicated_table": "replication.store.histories:REPLICATED_TABLE_HISTORY",
    "pipe": "pipes.store.histories:PIPE_HISTORY",
    "materialized_view": "materialized.store.histories:VIEW_HISTORY",
    "dynamic_table": "materialized.store.histories:VIEW_HISTORY",
    "clustered_table": "clustering.store.histories:CLUSTERED_TABLE_HISTORY",
    "search_optimization": "search.store.histories:SEARCH_HISTORY",
}
"""Kind → the parts of its history, a tuple of HistoryPart, `module:name` below `tidemark`."""

LOOKED = {"landing_table": "channels.worker.token_histories:LANDING_HISTORY"}
"""Kind → the history that the lake has of it, a LookedHistory, `module:name` below `tidemark`."""

WITHOUT = {
    "landing_table": "The lake has the history of channels: here its newest two hours, in `lake.channel_history` all.",
}
"""Kind → why the control store has no history of it, and who has."""


class Unit(StrEnum):
    """The meaning of a figure, by which it is written and drawn."""

    TIME = "time"
    NUMBER = "number"
    VERSION = "version"
    ROWS = "rows"
    BYTES = "bytes"
    SECONDS = "seconds"
    TEXT = "text"
    TEXTS = "texts"
    RUN = "run"  # the key of a task, or the name of a person


class Shape(StrEnum):
    """The form of a chart. STEPS: the value holds until the next point. TREE: lives of partitions with their parents,
    each as wide as its load.
    """

    LINE = "line"
    STEPS = "steps"
    BARS = "bars"
    TREE = "tree"


@dataclass(frozen=True)
class Field:
    """A figure of a point. `private`: only readers of the DAG of the point's run see it. `owned`: a reason, or the name
    of a person. Only readers of the DAGs that own the object and the one that the point is `of` see it.
    """

    name: str
    words: str
    unit: Unit
    private: bool = False
    owned: bool = False


AT = Field("at", "When", Unit.TIME)
"""The time of a point. Each part has it."""


@dataclass(frozen=True)
class Chart:
    """A chart over time of some fields of a part, which have one unit. `words`: what it shows, in a sentence."""

    name: str
    title: str
    words: str
    fields: tuple[str, ...]
    shape: Shape = Shape.LINE


@dataclass(frozen=True)
class Point:
    """One entry of a history. `key`: its place, which no later entry changes. `values`: by the names of the fields.
    `of`: kind and uid of the part of the object that it is of.
    """

    key: Key
    values: Mapping[str, Any]
    of: tuple[str, str] | None = None


@dataclass(frozen=True)
class Portion:
    """The portion that is asked for: `limit` points that are older than the one at `after`; None: the newest. `newer`:
    those that are newer than it, the nearest of them.
    """

    after: Key | None
    limit: int
    newer: bool = False


PointsOf = Callable[[sa.Connection, str, Portion], Sequence[Point]]
CountOf = Callable[[sa.Connection, str], int]


@dataclass(frozen=True)
class HistoryPart:
    """A part of a history: points of one sort, newest first.

    `points`: those of an object, by its uid, in a bounded number of queries. `key`: the types of a point's key.
    `count`: how many the object has in all, for a part that is cheap to count.
    """

    name: str
    words: str
    fields: tuple[Field, ...]
    charts: tuple[Chart, ...]
    key: tuple[type, ...]
    points: PointsOf
    count: CountOf | None = None


@dataclass(frozen=True)
class ShownPart:
    """A portion of a part. `cursor`: for the portion that follows, with older points; None on the last one. `newer`:
    for the portion before it; None on the first one. `total`: the points of all portions, if they are counted.
    """

    part: HistoryPart
    points: tuple[Point, ...]
    cursor: str | None
    newer: str | None = None
    total: int | None = None


@dataclass(frozen=True)
class LookedHistory:
    """A history that a look at the lake tells. `question`: the `tidemark.streams.worker.questions.LogQuestion` about
    the object with that uid; None for one that lives no more. `parts`: those of an answer, with this many points each
    at most.
    """

    question: Callable[[sa.Connection, str], Any]
    parts: Callable[[Any, int], tuple[ShownPart, ...]]


def looked_history(kind: str) -> LookedHistory | None:
    """The history of that kind that the lake has; None if the control store has it."""
    name = LOOKED.get(kind)
    found: LookedHistory | None = None if name is None else resolved(name)
    return found


def parts_of(kind: str) -> tuple[HistoryPart, ...]:
    """The parts that the kind has; none for a kind whose history is elsewhere."""
    name = HISTORIES.get(kind)
    found: tuple[HistoryPart, ...] = () if name is None else resolved(name)
    return found


def history_of(
    connection: sa.Connection, kind: str, uid: str, *, part: str | None, cursor: str | None, limit: int
) -> tuple[ShownPart, ...]:
    """The newest points of each part, or of `part` alone; with a cursor, those that follow it.

    Raises InvalidArgument for a part that the kind lacks, for a bad cursor, and for a cursor without a part.
    """
    if not 1 <= limit <= MOST:
        raise InvalidArgument(argument="limit", value=limit, problem=f"1 to {MOST:,} points are read at once")
    known = parts_of(kind)
    chosen = tuple(one for one in known if part in (None, one.name))
    if part is not None and not chosen:
        names = ", ".join(one.name for one in known) or "none"
        raise InvalidArgument(argument="part", value=part, problem=f"the parts of a {kind} are: {names}")
    if cursor is not None and part is None:
        raise InvalidArgument(argument="cursor", value=cursor, problem="name the part that it belongs to")
    return tuple(_shown(connection, one, uid, cursor, limit) for one in chosen)


def newest_rows(
    connection: sa.Connection, query: sa.Select[Any], order: tuple[sa.ColumnElement[Any], ...], portion: Portion
) -> Sequence[sa.RowMapping]:
    """The rows of the query in that portion, newest first. `order`: the columns of the key."""
    if portion.after is not None:
        values = (sa.literal(value, column.type) for value, column in zip(portion.after, order, strict=True))
        key, known = sa.tuple_(*order), sa.tuple_(*values)
        query = query.where(key > known if portion.newer else key < known)
    ordering = (column.asc() if portion.newer else column.desc() for column in order)
    rows = connection.execute(query.order_by(*ordering).limit(portion.limit)).mappings().all()
    return rows[::-1] if portion.newer else rows


def seconds_between(begun: datetime, ended: datetime | None) -> float | None:
    """The seconds of a run; None before its end."""
    return None if ended is None else (ended - begun).total_seconds()


def lag_at(ended: datetime | None, as_of: datetime | None) -> float | None:
    """The age of a state at an end, in seconds, 0 for clocks that disagree; None without one of both."""
    return None if ended is None or as_of is None else max(0.0, (ended - as_of).total_seconds())


def _shown(connection: sa.Connection, part: HistoryPart, uid: str, cursor: str | None, limit: int) -> ShownPart:
    portion = _portion(part, cursor, limit + 1)
    found = part.points(connection, uid, portion)
    points = tuple(found[-limit:] if portion.newer else found[:limit])
    more, beyond = len(found) > limit, portion.after is not None
    return ShownPart(
        part,
        points,
        cursor=cursor_after(part.name, points[-1].key) if points and (more or portion.newer) else None,
        newer=cursor_after(_newer(part), points[0].key) if points and (more if portion.newer else beyond) else None,
        total=None if part.count is None else part.count(connection, uid),
    )


def _portion(part: HistoryPart, cursor: str | None, limit: int) -> Portion:
    """A cursor says in which direction it leads. Raises CursorInvalid."""
    if cursor is None:
        return Portion(None, limit)
    try:
        return Portion(key_of(cursor, part.name, part.key), limit)
    except CursorInvalid:
        return Portion(key_of(cursor, _newer(part), part.key), limit, newer=True)


def _newer(part: HistoryPart) -> str:
    """The name of the part's list in a cursor that leads to newer points."""
    return f"{part.name}, newer"
