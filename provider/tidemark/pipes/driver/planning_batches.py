"""The choice of files for a batch: those that are not known yet, the oldest first."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from tidemark.pipes.driver.files_table import FilesTable, latest_results
from tidemark.pipes.model.events import Event
from tidemark.pipes.model.files import FileStatus

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["loaded_files", "not_known", "oldest", "pending", "planned_files"]

_COLUMNS = ("file", "size", "modified_at", "etag")
_LOADED = [status.value for status in FileStatus if status.has_rows]


def planned_files(table: FilesTable, now: datetime) -> DataFrame:
    """(file): those that belong to a batch, whatever became of them."""
    return table.remembered(now).where(F.col("event") == Event.PLANNED.value).select("file")


def loaded_files(table: FilesTable, now: datetime) -> DataFrame:
    """(file): those whose rows were loaded, and those that have no rows."""
    return latest_results(table.remembered(now)).where(F.col("status").isin(_LOADED)).select("file")


def not_known(found: DataFrame, known: DataFrame) -> DataFrame:
    """The files of `found` that are not in `known`, which may be much longer.

    The history is reduced to these files first, so that no sort of it is needed.
    """
    seen = known.join(F.broadcast(found.select("file")), "file", "left_semi").distinct()
    return found.join(seen, "file", "left_anti")


def pending(table: FilesTable, now: datetime) -> DataFrame:
    """(file, size, modified_at, etag): files in the queue that belong to no batch after they were queued."""
    events = table.remembered(now)
    queued = (
        events.where(F.col("event") == Event.QUEUED.value)
        .groupBy("file")
        .agg(*(F.max_by(name, "at").alias(name) for name in _COLUMNS[1:]), F.max("at").alias("queued_at"))
    )
    planned = events.where(F.col("event") == Event.PLANNED.value).groupBy("file").agg(F.max("at").alias("planned_at"))
    waiting = queued.join(planned, "file", "left").where(
        F.col("planned_at").isNull() | (F.col("planned_at") < F.col("queued_at"))
    )
    return waiting.select(*_COLUMNS)


def oldest(files: DataFrame, most_files: int, most_bytes: int | None) -> tuple[DataFrame, int]:
    """The oldest files, at least one, at most these many and with these bytes in total, and their number."""
    rows = files.select(*_COLUMNS).orderBy("modified_at", "file").limit(most_files)
    if most_bytes is None:
        return rows, rows.count()
    sizes = [row.size for row in rows.select("size").collect()]
    taken, total = 0, 0
    for size in sizes:
        if taken and total + size > most_bytes:
            break
        taken, total = taken + 1, total + size
    return rows.limit(taken), taken
