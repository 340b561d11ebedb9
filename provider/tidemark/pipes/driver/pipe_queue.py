"""The queue of a pipe: new files, and those that are named or asked for again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from tidemark.pipes.driver.files_table import FilesTable, micros, utc
from tidemark.pipes.driver.found_files import Listed, list_files
from tidemark.pipes.driver.planning_batches import loaded_files, not_known, pending, planned_files
from tidemark.pipes.model.copying import Load
from tidemark.pipes.model.events import Event
from tidemark.pipes.model.files import FileSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["KEPT", "PipeQueue"]

KEPT = timedelta(days=14)


@dataclass(frozen=True)
class PipeQueue:
    """The table of files of a pipe, and its load."""

    spark: SparkSession
    table: FilesTable
    load: Load
    options: Mapping[str, str] = field(repr=False)

    def listed(self, now: datetime, full_after: timedelta) -> tuple[Listed, bool]:
        """Files of the location, and whether all of them were listed.

        A store that lists by name is asked for names behind the greatest one known, and for all of them if the last
        full listing is older than `full_after`. Other storages list all files.
        """
        last, full_at = self._last_listing(now)
        is_sorted = self.load.location.startswith("s3://")
        if is_sorted and last is not None and full_at is not None and now - full_at < full_after:
            return list_files(self.load, self.options, start_after=last), False
        return list_files(self.load, self.options), True

    def new(self, found: DataFrame, now: datetime) -> DataFrame:
        """Files that are neither in a batch nor in the queue."""
        waiting = pending(self.table, now).select("file")
        return not_known(found, planned_files(self.table, now).unionByName(waiting))

    def to_load_again(self, found: DataFrame, now: datetime) -> DataFrame:
        """Files that were not loaded, also those that failed, and do not wait in the queue."""
        waiting = pending(self.table, now).select("file")
        return not_known(found, loaded_files(self.table, now).unionByName(waiting))

    def queued(self, files: DataFrame, source: FileSource) -> DataFrame:
        """The events of files that come into the queue."""
        return files.withColumns({"event": F.lit(Event.QUEUED.value), "source": F.lit(source.value)})

    def listing_event(self, listed: Listed, *, full: bool) -> DataFrame | None:
        """The event of a listing, where a later one can go on from it."""
        if not self.load.location.startswith("s3://"):
            return None
        rows = [(Event.LISTED.value, listed.last, "full" if full else "partial")]
        return self.spark.createDataFrame(rows, "event STRING, file STRING, status STRING")

    def _last_listing(self, now: datetime) -> tuple[str | None, datetime | None]:
        """The greatest name that is known, and the time of the last full listing."""
        if not self.load.location.startswith("s3://"):
            return None, None
        events = self.table.remembered(now).where(F.col("event") == Event.LISTED.value)
        rows = events.groupBy("status").agg(F.max("file").alias("last"), F.max("at").alias("at"))
        found = rows.select("status", "last", micros("at")).collect()
        last = max((row["last"] or "" for row in found), key=lambda name: name.encode(), default=None)
        full = [utc(row["at"]) for row in found if row.status == "full"]
        return last, max(full, default=None)
