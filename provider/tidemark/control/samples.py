"""Samples: figures of one run on an object, which no row of its subject keeps, for the object's history."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa

from tidemark.control.history import Cursor, Step, drop_by_number
from tidemark.control.newest import newest_of_each
from tidemark.control.object_histories import Point, Portion, newest_rows
from tidemark.control.schema import samples
from tidemark.control.usual_lags import NEWEST

__all__ = ["drop_samples", "keep_sample", "newest_figures", "sampled"]

_of = samples.c


def keep_sample(
    connection: sa.Connection, kind: str, uid: str, *, at: datetime, run: str | None, figures: Mapping[str, float]
) -> None:
    """Keep the figures of a run, in the transaction that stores its end. A second time changes nothing."""
    same = (_of.kind == kind) & (_of.uid == uid) & (_of.moved_at == at) & _of.run.is_not_distinct_from(run)
    if connection.execute(sa.select(_of.id).where(same).limit(1)).first() is not None:
        return
    told = json.dumps(dict(figures), sort_keys=True)
    connection.execute(samples.insert().values(kind=kind, uid=uid, moved_at=at, run=run, figures=told))


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


def drop_samples(connection: sa.Connection, before: datetime, after: Cursor | None, most: int) -> Step:
    """Samples that later ones of the same object have followed. A second run finds none."""
    return drop_by_number(connection, samples, _of.uid, before, after, most)
