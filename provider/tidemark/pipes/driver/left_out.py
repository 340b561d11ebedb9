"""Files that a look for new ones leaves out: those that COPY INTO has loaded, and those older than the history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from tidemark.pipes.driver.files_table import FilesTable
from tidemark.pipes.driver.histories import open_history
from tidemark.pipes.driver.planning_batches import in_order, loaded_files, met_files
from tidemark.pipes.driver.target import open_target
from tidemark.pipes.model.copying import Load
from tidemark.pipes.model.events import COPY_KEPT, COPY_SUFFIX, Event

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["LateFiles", "loaded_by_copy"]

_RENEW_AFTER = timedelta(days=7)  # half the time that an event is kept, so that a look may come late


def loaded_by_copy(
    spark: SparkSession, load: Load, options: Mapping[str, str] | None, files: pa.Table, now: datetime
) -> pa.Table:
    """Those of the files that COPY INTO has loaded into the target, by its history. Raises TableNotFound."""
    history = open_history(spark, load.path + COPY_SUFFIX, options, COPY_KEPT) if files.num_rows else None
    if history is None or history.is_new:
        return files.slice(0, 0)
    target = open_target(load, options).metadata.table_id
    names = spark.createDataFrame(files.select(["file"]))
    loaded = loaded_files(history, now, into=target, location=load.location)
    found = loaded.join(F.broadcast(names), "file", "left_semi").distinct().toArrow()
    return files.filter(pc.is_in(files.column("file"), found.column("file").combine_chunks()))


@dataclass
class LateFiles:
    """Files below a location that a run leaves out, since they are older than the history of its pipe.

    Most of them were loaded and forgotten. The table notes all of them, again after some days, so that it knows those
    that come later. `unseen`: names of such.
    """

    table: FilesTable
    location: str
    unseen: dict[str, None] = field(default_factory=dict)
    _to_note: pa.Table | None = None

    def leave_out(self, files: pa.Table, now: datetime) -> None:
        """Look which of the files the table has met."""
        if not files.num_rows:
            return
        names = self.table.spark.createDataFrame(files.select(["file"]))
        events = met_files(self.table, self.location)
        met = events.join(F.broadcast(names), "file", "left_semi").groupBy("file").agg(F.max("at").alias("at"))
        found = met.select("file", (F.col("at") >= F.lit(now - _RENEW_AFTER)).alias("lately")).toArrow()
        lately = found.filter(found.column("lately"))
        unseen = in_order(_others(files, found))
        self.unseen.update(dict.fromkeys(unseen.column("file").to_pylist()))
        self._to_note = _others(files, lately)

    def note(self, now: datetime) -> None:
        """Add an event for each file that the table may forget, so that no later run takes it for one that came."""
        if self._to_note is not None and self._to_note.num_rows:
            self.table.note(self._to_note, Event.LATE, self.location, now)


def _others(files: pa.Table, known: pa.Table) -> pa.Table:
    return files.filter(pc.invert(pc.is_in(files.column("file"), known.column("file").combine_chunks())))
