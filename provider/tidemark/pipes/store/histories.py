"""The history of a pipe: its runs with files, rows and errors."""

from __future__ import annotations

import sqlalchemy as sa

from tidemark.control.object_histories import AT, Chart, Field, HistoryPart, Point, Portion, Shape, Unit
from tidemark.control.samples import sampled
from tidemark.pipes.store.pipes import KIND

__all__ = ["PIPE_HISTORY"]


def _runs(connection: sa.Connection, uid: str, portion: Portion) -> list[Point]:
    return sampled(connection, KIND, uid, portion)


_RUNS = HistoryPart(
    "runs",
    "Runs that took files, the newest first",
    (
        AT,
        Field("run", "Run", Unit.RUN),
        Field("files", "Files", Unit.NUMBER),
        Field("files_loaded", "Files loaded", Unit.NUMBER),
        Field("files_with_errors", "Files with errors", Unit.NUMBER),
        Field("rows", "Rows loaded", Unit.ROWS),
        Field("bytes", "Bytes loaded", Unit.BYTES),
        Field("errors", "Errors", Unit.NUMBER),
        Field("pending", "Files that wait", Unit.NUMBER),
        Field("seconds", "Seconds", Unit.SECONDS),
    ),
    (
        Chart("rows", "Rows loaded", "The rows that each run loaded.", ("rows",), Shape.BARS),
        Chart(
            "files",
            "Files of runs",
            "The files that each run loaded, those with errors, and those that waited after it.",
            ("files_loaded", "files_with_errors", "pending"),
        ),
        Chart("bytes", "Bytes loaded", "The bytes of the files that each run loaded.", ("bytes",), Shape.BARS),
        Chart("seconds", "Seconds of runs", "How long each run took.", ("seconds",), Shape.BARS),
    ),
    (int,),
    _runs,
)

PIPE_HISTORY = (_RUNS,)
