"""Samples: figures of a run or a look at an object, which no row of its subject keeps, for the object's history."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.control.history import LOOK, Cursor, Step, drop_by_number
from tidemark.control.newest import newest_of_each, newest_value
from tidemark.control.object_histories import Point, Portion, newest_rows
from tidemark.control.run_keys import RunPart
from tidemark.control.schema import UtcDateTime, samples
from tidemark.control.usual_lags import NEWEST

__all__ = [
    "Seen",
    "drop_samples",
    "keep_looks",
    "keep_sample",
    "newest_figures",
    "newest_run",
    "newest_seen",
    "sampled",
    "seen_in",
    "sums_of_runs",
]

_of = samples.c


@dataclass(frozen=True)
class Seen:
    """Figures that a look has seen of an object. `number`: of the sample; older ones have lower ones, and a new one has
    None.
    """

    uid: str
    at: datetime
    figures: Mapping[str, float]
    number: int | None = None


def keep_sample(
    connection: sa.Connection, kind: str, uid: str, *, at: datetime, run: str | None, figures: Mapping[str, float]
) -> None:
    """Keep the figures of a run, in the transaction that stores its end. A second time changes nothing."""
    same = (_of.kind == kind) & (_of.uid == uid) & (_of.moved_at == at) & _of.run.is_not_distinct_from(run)
    if connection.execute(sa.select(_of.id).where(same).limit(1)).first() is not None:
        return
    told = json.dumps(dict(figures), sort_keys=True)
    connection.execute(samples.insert().values(kind=kind, uid=uid, moved_at=at, run=run, figures=told))


def keep_looks(connection: sa.Connection, kind: str, found: Sequence[Seen]) -> None:
    """Keep what looks have seen: each in the sample of its number if that is older, else in a new one. A second time
    may leave equal samples. Two statements for any number of looks.
    """
    told = [(one, json.dumps(dict(one.figures), sort_keys=True)) for one in found]
    new = [
        {"kind": kind, "uid": one.uid, "run": LOOK, "moved_at": one.at, "figures": figures}
        for one, figures in told
        if one.number is None
    ]
    older = [{"of_id": one.number, "at": one.at, "told": figures} for one, figures in told if one.number is not None]
    if new:
        connection.execute(samples.insert(), new)
    if older:
        at = sa.bindparam("at", type_=UtcDateTime)
        move = samples.update().where(_of.id == sa.bindparam("of_id"), _of.moved_at < at)
        connection.execute(move.values(moved_at=at, figures=sa.bindparam("told")), older)


def newest_seen(connection: sa.Connection, kind: str, uids: Sequence[str]) -> dict[str, Seen]:
    """The newest sample of each of these objects that has one, by uid. One query for each 50 of them."""
    query = sa.select(_of.id, _of.uid, _of.moved_at.label("at"), _of.figures).where(_of.kind == kind)
    found = newest_of_each(connection, query, uids, of=_of.uid, order=(_of.id,), most=1)
    return {uid: Seen(uid, row["at"], json.loads(row["figures"]), row["id"]) for uid, (row,) in found.items()}


def seen_in(connection: sa.Connection, kind: str, uids: Sequence[str], portion: Portion) -> list[Seen]:
    """The samples of these objects in that portion, newest first. The key is the number."""
    query = sa.select(samples).where(_of.uid.in_(uids), _of.kind == kind)
    rows = newest_rows(connection, query, (_of.id,), portion)
    return [Seen(row["uid"], row["moved_at"], json.loads(row["figures"]), row["id"]) for row in rows]


def sampled(connection: sa.Connection, kind: str, uid: str, portion: Portion) -> list[Point]:
    """The points of a history part that consists of samples: `at`, `run` and the figures."""
    query = sa.select(samples).where(_of.kind == kind, _of.uid == uid)
    rows = newest_rows(connection, query, (_of.id,), portion)
    return [
        Point((row["id"],), {"at": row["moved_at"], "run": row["run"], **json.loads(row["figures"])}) for row in rows
    ]


def newest_figures(connection: sa.Connection, kind: str, uids: Sequence[str], name: str) -> dict[str, list[float]]:
    """One figure of the newest samples of each of these objects, by uid, where they have it."""
    query = sa.select(_of.uid, _of.moved_at.label("at"), _of.figures).where(_of.kind == kind)
    found = newest_of_each(connection, query, uids, of=_of.uid, order=(_of.id,), most=NEWEST)
    told = {uid: [json.loads(row["figures"]).get(name) for row in rows] for uid, rows in found.items()}
    return {uid: [one for one in figures if one is not None] for uid, figures in told.items()}


def newest_run(kind: str, of: sa.Column[str]) -> sa.ScalarSelect[Any]:
    """The run of the newest sample of an object; `of`: its uid, in the table around."""
    return newest_value(_of.run, _of.kind == kind, _of.uid == of, of=of, order=_of.id)


def sums_of_runs(connection: sa.Connection, kind: str, part: RunPart) -> dict[str, Counter[str]]:
    """The sums of the figures that these tasks have kept, by uid. One query, which reads the samples of the objects
    that the DAG owns.
    """
    query = sa.select(_of.uid, _of.figures).where(_of.kind == kind, _of.uid.in_(part.owned(kind)), part.has(_of.run))
    found: dict[str, Counter[str]] = {}
    for row in connection.execute(query):
        found.setdefault(row.uid, Counter()).update(json.loads(row.figures))
    return found


def drop_samples(connection: sa.Connection, before: datetime, after: Cursor | None, most: int) -> Step:
    """Samples that later ones of the same object have followed. A second run finds none."""
    return drop_by_number(connection, samples, _of.uid, before, after, most)
