"""The history of a clustered table: its reclusterings with depth and cost."""

from __future__ import annotations

import sqlalchemy as sa

from tidemark.clustering.store.schema import reclusterings
from tidemark.control.object_histories import AT, Chart, Field, HistoryPart, Point, Portion, Shape, Unit, newest_rows

__all__ = ["CLUSTERED_TABLE_HISTORY"]

_of = reclusterings.c


def _reclusterings(connection: sa.Connection, uid: str, portion: Portion) -> list[Point]:
    rows = newest_rows(connection, sa.select(reclusterings).where(_of.table_uid == uid), (_of.id,), portion)
    return [_point(row) for row in rows]


def _point(row: sa.RowMapping) -> Point:
    values = {field.name: row[field.name] for field in _FIELDS if field is not AT}
    return Point((row["id"],), {"at": row["ended_at"] or row["moved_at"], **values})


_FIELDS = (
    AT,
    Field("run", "Planned by", Unit.RUN),
    Field("state", "State", Unit.TEXT),
    Field("how", "Way", Unit.TEXT),
    Field("why", "Reason of the way", Unit.TEXT, private=True),
    Field("depth_before", "Depth before", Unit.NUMBER),
    Field("depth_after", "Depth after", Unit.NUMBER),
    Field("planned_bytes", "Bytes planned", Unit.BYTES),
    Field("bytes", "Bytes rewritten", Unit.BYTES),
    Field("files_removed", "Files removed", Unit.NUMBER),
    Field("files_added", "Files added", Unit.NUMBER),
    Field("seconds", "Seconds", Unit.SECONDS),
    Field("error", "Error", Unit.TEXT, private=True),
)

_RECLUSTERINGS = HistoryPart(
    "reclusterings",
    "Reclusterings, the newest first",
    _FIELDS,
    (
        Chart(
            "depth",
            "Depth before and after",
            "The average depth of the table before and after each reclustering.",
            ("depth_before", "depth_after"),
        ),
        Chart("bytes", "Bytes rewritten", "The bytes that each reclustering rewrote.", ("bytes",), Shape.BARS),
        Chart("seconds", "Seconds of reclusterings", "How long each reclustering took.", ("seconds",), Shape.BARS),
    ),
    (int,),
    _reclusterings,
)

CLUSTERED_TABLE_HISTORY = (_RECLUSTERINGS,)
