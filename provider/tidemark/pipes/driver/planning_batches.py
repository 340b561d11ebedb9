"""The choice of files for a batch: those that are not known yet, the oldest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from tidemark.pipes.driver.files_table import PARTIAL, FilesTable, latest_results, utc
from tidemark.pipes.driver.found_files import FOUND_SCHEMA
from tidemark.pipes.model.events import Event
from tidemark.pipes.model.files import LOADED, TOLD

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "Chosen",
    "certain",
    "chosen",
    "collected",
    "in_order",
    "loaded_files",
    "met_files",
    "new_files",
    "not_known",
    "open_files",
    "pending",
    "planned_by",
    "planned_files",
    "seen_files",
    "without",
]

_COLUMNS = ("file", "size", "modified_at", "etag")
_LATE_COMMIT = timedelta(days=1)  # no event reaches its table later than this after its time


@dataclass(frozen=True)
class Chosen:
    """Files of a batch, oldest first, and those that are left."""

    files: pa.Table
    left: pa.Table


def planned_files(table: FilesTable, now: datetime, location: str) -> DataFrame:
    """(file): those below the location that belong to a batch, also failed ones."""
    return _planned(table.remembered(now), location).select("file")


def seen_files(table: FilesTable, now: datetime, location: str) -> DataFrame:
    """(file): those that a listing does not take, since they belong to a batch, or COPY INTO has loaded them."""
    events = table.remembered(now)
    copied = _left_out(events, (Event.COPIED,), location).select("file")
    return _planned(events, location).select("file").unionByName(copied)


def met_files(table: FilesTable, location: str) -> DataFrame:
    """(file, at): those below the location that belong to a batch, or that a look has left out. Their events stay a day
    longer than they are remembered.
    """
    events = table.events(utc(0))
    left_out = _left_out(events, (Event.COPIED, Event.LATE), location)
    return _planned(events, location).select("file", "at").unionByName(left_out)


def open_files(table: FilesTable, batch: int, location: str) -> DataFrame:
    """(file, size, modified_at, etag): those below the location that belong to the batch, however old it is."""
    events = table.events(utc(0)).where(F.col("batch") == F.lit(batch))
    return _planned(events, location).select(*_COLUMNS)


def _planned(events: DataFrame, location: str | None) -> DataFrame:
    """(batch, file, size, modified_at, etag, at): of batches, by their names below the location. An earlier statement
    may have named another place.
    """
    planned = events.where(F.col("event") == Event.PLANNED.value).select("batch", *_COLUMNS, "at")
    return planned if location is None else _below(planned, events, location)


def _left_out(events: DataFrame, kinds: Sequence[Event], location: str) -> DataFrame:
    """(file, at): of events of files without a batch. An earlier release did not store their place."""
    found = events.where(F.col("event").isin([kind.value for kind in kinds]))
    return _at_place(found.select("file", "at", F.col("source").alias("__place")), location)


def planned_by(table: FilesTable, run: str, now: datetime) -> DataFrame:
    """(file): those that belong to a batch of that run."""
    events = table.remembered(now)
    own = events.where((F.col("event") == Event.BATCH.value) & (F.col("run") == F.lit(run))).select("batch")
    planned = events.where(F.col("event") == Event.PLANNED.value).select("batch", "file")
    return planned.join(F.broadcast(own), "batch", "left_semi").select("file")


def loaded_files(
    table: FilesTable, now: datetime, *, into: str | None = None, location: str | None = None
) -> DataFrame:
    """(file): those whose rows were loaded, and those that have no rows. `into`: the id of the target; what another
    table of its name got does not count then. `location`: files below it, however a statement named their place.
    """
    events = table.remembered(now)
    loaded = latest_results(events).where(F.col("status").isin(*LOADED))
    if into is not None:
        done = events.where(F.col("event") == Event.DONE.value)
        others = done.where(F.col("source") != F.lit(into)).select("batch")  # NULL: an earlier release did not say it
        loaded = loaded.join(F.broadcast(others), "batch", "left_anti")
    loaded = loaded.select("batch", "file", "at")
    if location is not None:
        loaded = _below(loaded, events, location)
    return loaded.select("file")


def _below(files: DataFrame, events: DataFrame, location: str) -> DataFrame:
    """Those of (batch, file, at) that are below a location, by their names there. Equal names of other places are of
    other files. The place of a batch is forgotten a day before its files.
    """
    heads = events.where(F.col("event") == Event.BATCH.value)
    places = heads.select("batch", F.get_json_object("statement", "$.location").alias("__place"))
    return _at_place(files.join(F.broadcast(places), "batch", "left"), location)


def _at_place(files: DataFrame, location: str) -> DataFrame:
    """Files at a `__place` (NULL: the location) that are below the location, by their names there."""
    location = location.rstrip("/")
    place = F.coalesce(F.rtrim("__place", F.lit("/")), F.lit(location))
    whole = files.withColumn("__whole", F.concat_ws("/", place, "file"))
    mine = whole.where(F.startswith("__whole", F.lit(f"{location}/")))
    return mine.withColumn("file", F.substr("__whole", F.lit(len(location) + 2))).drop("__whole", "__place")


def not_known(found: DataFrame, known: DataFrame) -> DataFrame:
    """The files of `found` that are not in `known`, which may be much longer.

    The history is reduced to these files first, so that no sort of it is needed.
    """
    seen = known.join(F.broadcast(found.select("file")), "file", "left_semi").distinct()
    return found.join(seen, "file", "left_anti")


def new_files(table: FilesTable, found: DataFrame, now: datetime, location: str) -> DataFrame:
    """The files of `found`, below the location, that are neither in a batch nor in the queue."""
    waiting = pending(table, now, location).select("file")
    return not_known(found, planned_files(table, now, location).unionByName(waiting))


def pending(table: FilesTable, now: datetime, location: str | None = None) -> DataFrame:
    """(file, size, modified_at, etag, queued_at): files in the queue that belong to no batch after they were queued.

    Each batch takes all files that wait, or says that it left some. Events from long before the last batch are looked
    at only in the second case. A file that somebody named is not loaded again. A run may plan it between the look
    for it and its event. So the event has the last batch that was planned before the look; in an earlier release its
    time decides. `location`: of the pipe's statement; batches of another place have other files.
    """
    events = table.remembered(now)
    last = events.where(F.col("event") == Event.BATCH.value).agg(
        F.max_by("status", "batch").alias("__status"), F.max("at").alias("__at")
    )
    since = F.when(F.col("__status").eqNullSafe(F.lit(PARTIAL)), None).otherwise(F.col("__at") - F.lit(_LATE_COMMIT))
    recent = events.crossJoin(F.broadcast(last)).where(since.isNull() | (F.col("at") >= since))
    queued = (
        recent.where(F.col("event") == Event.QUEUED.value)
        .groupBy("file")
        .agg(
            *(F.max_by(name, "at").alias(name) for name in _COLUMNS[1:]),
            F.max("at").alias("queued_at"),
            F.max(F.when(~_is_told(), F.col("batch"))).alias("__again_after"),
            F.max(F.when(~_is_told() & F.col("batch").isNull(), F.col("at"))).alias("__again_at"),
        )
    )
    last_plans = F.max("at").alias("__planned_at"), F.max("batch").alias("__planned_in")
    planned = _planned(recent, location).groupBy("file").agg(*last_plans)
    is_later = (F.col("__planned_in") <= F.col("__again_after")) | (F.col("__planned_at") < F.col("__again_at"))
    waits = F.col("__planned_at").isNull() | is_later
    return queued.join(planned, "file", "left").where(waits).select(*_COLUMNS, "queued_at")


def _is_told() -> Column:
    """Whether the event of a file in the queue is of one that somebody named, and no wish to load it again."""
    return F.coalesce(F.col("source").isin([source.value for source in TOLD]), F.lit(False))


def collected(files: DataFrame) -> pa.Table:
    """The files in the order of their time and name."""
    found: pa.Table = files.select(*_COLUMNS).toArrow()
    columns = [found.column(field.name).cast(field.type) for field in FOUND_SCHEMA]
    return in_order(pa.table(columns, schema=FOUND_SCHEMA))


def in_order(files: pa.Table) -> pa.Table:
    """The files in the order of their time and name. Those without a known time come last."""
    return files.sort_by([("modified_at", "ascending"), ("file", "ascending")])


def certain(table: FilesTable, files: pa.Table, now: datetime) -> pa.Table:
    """The files that were not loaded and forgotten: none is older than the history, unless that is whole."""
    before = table.forgotten_before(now)
    if before is None:
        return files
    at = files.column("modified_at")
    return files.filter(pc.or_kleene(pc.is_null(at), pc.greater_equal(at, pa.scalar(before))))


def without(files: pa.Table, others: pa.Table) -> pa.Table:
    """The files that have no name of the others."""
    return files.filter(pc.invert(pc.is_in(files.column("file"), others.column("file"))))


def chosen(files: pa.Table, most_files: int, most_bytes: int | None, *, beyond: bool = False) -> Chosen:
    """The first files, at least one, at most these many and with these bytes in total. `beyond`: the last file is the
    first that exceeds the bytes.
    """
    count = min(most_files, files.num_rows)
    if most_bytes is not None and count > 1:
        totals = pc.cumulative_sum(pc.coalesce(files.column("size"), pa.scalar(0, pa.int64())))
        within = pc.sum(pc.less_equal(totals, most_bytes)).as_py() or 0
        count = min(count, within + 1 if beyond else max(1, within))
    return Chosen(files.slice(0, count), files.slice(count))
