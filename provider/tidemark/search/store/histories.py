"""The history of search optimization: the commits of its upkeep, and their cost."""

from __future__ import annotations

import sqlalchemy as sa

from tidemark.control.object_histories import AT, Chart, Field, HistoryPart, Point, Portion, Shape, Unit, newest_rows
from tidemark.search.store.schema import upkeeps

__all__ = ["SEARCH_HISTORY"]

_of = upkeeps.c


def _upkeeps(connection: sa.Connection, uid: str, portion: Portion) -> list[Point]:
    rows = newest_rows(connection, sa.select(upkeeps).where(_of.search_uid == uid), (_of.version,), portion)
    return [Point((row["version"],), {field.name: row[field.name] for field in _FIELDS}) for row in rows]


_FIELDS = (
    AT,
    Field("run", "Read from the log by", Unit.RUN),
    Field("version", "Version of the search table", Unit.VERSION),
    Field("base_version", "Version of the table", Unit.VERSION),
    Field("files", "Files indexed", Unit.NUMBER),
    Field("rows", "Rows written", Unit.ROWS),
    Field("read_bytes", "Bytes read", Unit.BYTES),
    Field("written_bytes", "Bytes written", Unit.BYTES),
    Field("seconds", "Seconds", Unit.SECONDS),
    Field("rebuilt", "Rebuilt", Unit.TEXT),
)

_UPKEEPS = HistoryPart(
    "upkeeps",
    "Commits of the upkeep, the newest first",
    _FIELDS,
    (
        Chart(
            "bytes",
            "Bytes of the upkeep",
            "The bytes that each commit read and wrote.",
            ("read_bytes", "written_bytes"),
        ),
        Chart("seconds", "Seconds of the upkeep", "How long each commit took.", ("seconds",), Shape.BARS),
    ),
    (int,),
    _upkeeps,
)

SEARCH_HISTORY = (_UPKEEPS,)
