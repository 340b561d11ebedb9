"""The history of a view: its refreshes with mode and cost."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from tidemark.control.object_histories import (
    AT,
    Chart,
    Field,
    HistoryPart,
    Point,
    Portion,
    Shape,
    Unit,
    lag_at,
    newest_rows,
)
from tidemark.materialized.store.schema import view_refreshes

__all__ = ["VIEW_HISTORY"]

_of = view_refreshes.c


def _refreshes(connection: sa.Connection, uid: str, portion: Portion) -> list[Point]:
    columns = [column for column in _of if column not in (_of.ends, _of.versions)]
    rows = newest_rows(connection, sa.select(*columns).where(_of.view_uid == uid), (_of.id,), portion)
    return [_point(row) for row in rows]


def _point(row: sa.RowMapping) -> Point:
    names = (field.name for field in _REFRESHES.fields if field.name not in ("at", "lag_seconds"))
    ended: datetime | None = row["ended_at"]
    values = {name: row[name] for name in names} | {"lag_seconds": lag_at(ended, row["as_of"])}
    return Point((row["id"],), {"at": ended or row["moved_at"], **values})


_REFRESHES = HistoryPart(
    "refreshes",
    "Refreshes, the newest first",
    (
        AT,
        Field("run", "Planned by", Unit.RUN),
        Field("state", "State", Unit.TEXT),
        Field("how", "Mode", Unit.TEXT),
        Field("why", "Reason of the mode", Unit.TEXT, private=True),
        Field("rows", "Rows written", Unit.ROWS),
        Field("bytes", "Bytes written", Unit.BYTES),
        Field("seconds", "Seconds", Unit.SECONDS),
        Field("write_seconds", "Seconds of the write", Unit.SECONDS),
        Field("incremental_bytes", "Estimate: incremental", Unit.BYTES),
        Field("full_bytes", "Estimate: in full", Unit.BYTES),
        Field("lag_seconds", "Lag at its end", Unit.SECONDS),
        Field("error", "Error", Unit.TEXT, private=True),
    ),
    (
        Chart("seconds", "Seconds of refreshes", "How long each refresh took.", ("seconds",), Shape.BARS),
        Chart(
            "bytes",
            "Bytes of refreshes",
            "The bytes that each refresh wrote, and the estimates by which its mode was chosen.",
            ("bytes", "incremental_bytes", "full_bytes"),
        ),
        Chart("rows", "Rows of refreshes", "The rows that each refresh wrote.", ("rows",), Shape.BARS),
        Chart("lag", "Lag of the view", "The age of the shown point in time when a refresh ended.", ("lag_seconds",)),
    ),
    (int,),
    _refreshes,
)

VIEW_HISTORY = (_REFRESHES,)
