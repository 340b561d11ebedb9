"""The queue of a pipe: new files, and those that are named or asked for again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from tidemark.lake.file_names import FileFilter
from tidemark.pipes.driver.files_table import FilesTable, micros, utc
from tidemark.pipes.driver.found_files import Listed, list_files
from tidemark.pipes.driver.left_out import loaded_by_copy
from tidemark.pipes.driver.planning_batches import (
    certain,
    collected,
    in_order,
    loaded_files,
    new_files,
    not_known,
    open_files,
    pending,
    without,
)
from tidemark.pipes.model.copying import Load
from tidemark.pipes.model.events import KEPT, Event
from tidemark.pipes.model.files import FileSource
from tidemark.pipes.planning.late_files import late_note

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PipeQueue"]


@dataclass(frozen=True)
class PipeQueue:
    """The table of files of a pipe, and its load."""

    spark: SparkSession
    table: FilesTable
    load: Load
    options: Mapping[str, str] = field(repr=False)

    def listed(self, now: datetime, full_after: timedelta, *, only_full: bool = False) -> tuple[Listed, bool]:
        """Files of the location, and whether all of them were listed.

        A store that lists by name is asked for names behind the greatest one known. If the last full listing is older
        than `full_after`, it lists all of them. Other storages always list all files. With `only_full` nothing is
        listed before that time.
        """
        if not self._is_sorted and not only_full:
            return list_files(self.load, self.options), True
        last, full_at = self._last_listing(now)
        if full_at is None or now - full_at >= full_after:
            return list_files(self.load, self.options), True
        if only_full:
            return Listed(), False
        return list_files(self.load, self.options, start_after=last or ""), False

    def take(self, found: Listed, source: FileSource, now: datetime, say: Callable[[str], None]) -> int:
        """Put files into the queue that the pipe does not know, and return their number. A refresh also takes files
        that were not loaded. It leaves out those that COPY INTO has loaded, or that are older than the history.
        """
        planned, ended = self.table.numbers()
        if source is FileSource.REFRESH:
            files = self._to_refresh(found, planned if planned != ended else None, now, say)
        elif self.table.is_new:
            files = in_order(found.table)
        else:
            files = collected(new_files(self.table, found.frame(self.spark), now, self.load.location))
        if files.num_rows:
            self.table.queue(files, source, planned, now)
        return int(files.num_rows)

    def _to_refresh(self, found: Listed, opened: int | None, now: datetime, say: Callable[[str], None]) -> pa.Table:
        """`opened`: the batch that is not done, whose files are not asked for again."""
        if self.table.is_new:
            new = sure = in_order(found.table)
        else:
            place = self.load.location
            waiting = pending(self.table, now, place).select("file")
            known = loaded_files(self.table, now, location=place).unionByName(waiting)
            if opened is not None:
                known = known.unionByName(open_files(self.table, opened, place).select("file"))
            new = collected(not_known(found.frame(self.spark), known))
            sure = certain(self.table, new, now)
        if late := new.num_rows - sure.num_rows:
            say(late_note(late, KEPT))
        return without(sure, self.loaded_by_copy(sure, now))

    def queue_again(self, batch: int, now: datetime) -> int:
        """Put the files of the batch into the queue that the statement loads, and return their number. A second run
        queues them once more, and they are loaded once.
        """
        files = collected(open_files(self.table, batch, self.load.location))
        only = FileFilter(prefix=self.load.prefix, regex=self.load.pattern)
        files = files.filter(pa.array(map(only.accepts, files.column("file").to_pylist()), pa.bool_()))
        if files.num_rows:
            self.table.queue(files, FileSource.REFRESH, batch, now)
        return int(files.num_rows)

    def loaded_by_copy(self, files: pa.Table, now: datetime) -> pa.Table:
        """Those of the files that the history of the target's COPY statements has as loaded."""
        return loaded_by_copy(self.spark, self.load, self.options, files, now)

    def listing_event(self, listed: Listed, *, has_channel: bool = False) -> dict[str, str] | None:
        """The event of a full listing; None if no later run needs it. A later run of the same place continues behind
        its last name. With a channel it asks for the age of the listing.
        """
        if not self._is_sorted and not has_channel:
            return None
        return {"event": Event.LISTED.value, "file": listed.last, "source": self._place}

    @property
    def _place(self) -> str:
        """The names that a listing finds: those of another prefix or pattern may be before its last name."""
        return "\n".join((self.load.location, self.load.prefix, self.load.pattern or ""))

    @property
    def _is_sorted(self) -> bool:
        return self.load.location.startswith("s3://")

    def _last_listing(self, now: datetime) -> tuple[str | None, datetime | None]:
        """The greatest name and the time of the last full listings, none of them of another place."""
        if self.table.is_new:
            return None, None
        of_place = F.coalesce("source", F.lit(self._place)) == F.lit(self._place)  # an earlier release has stored none
        listed = self.table.remembered(now).where((F.col("event") == Event.LISTED.value) & of_place)
        rows = listed.agg(F.max("file").alias("last"), F.max("at").alias("at"))
        (found,) = rows.select("last", micros("at")).collect()
        return found["last"], None if found["at"] is None else utc(found["at"])
