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

        A store that lists by name is asked for names behind the greatest one known. It is asked for all of them if the
        last full listing is older than `full_after`. Other storages list all files.
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

    def to_load_again(self, found: DataFrame, now: datetime, *, force: bool = False) -> DataFrame:
        """Files that were not loaded, also failed ones, and do not wait in the queue. `force`: loaded ones, too."""
        waiting = pending(self.table, now).select("file")
        if force:
            return not_known(found, waiting)
        return not_known(found, loaded_files(self.table, now).unionByName(waiting))

    def queued(self, files: DataFrame, source: FileSource) -> DataFrame:
        """The events of files that come into the queue."""
        return files.withColumns({"event": F.lit(Event.QUEUED.value), "source": F.lit(source.value)})

    def listing_event(self, listed: Listed) -> DataFrame | None:
        """The event of a full listing, where a later one can continue behind its last name."""
        if not self.load.location.startswith("s3://"):
            return None
        return self.spark.createDataFrame([(Event.LISTED.value, listed.last)], "event STRING, file STRING")

    def _last_listing(self, now: datetime) -> tuple[str | None, datetime | None]:
        """The greatest name that is known, and the time of the last full listing."""
        if not self.load.location.startswith("s3://"):
            return None, None
        named = F.col("event").isin(Event.LISTED.value, Event.QUEUED.value)
        listed_at = F.max(F.when(F.col("event") == Event.LISTED.value, F.col("at"))).alias("at")
        rows = self.table.remembered(now).where(named).agg(F.max("file").alias("last"), listed_at)
        (found,) = rows.select("last", micros("at")).collect()
        return found["last"], None if found["at"] is None else utc(found["at"])
