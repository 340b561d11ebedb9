"""Histories of loads as rows: each file with its state, as COPY_HISTORY and as the reports of a pipe have it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from tidemark.errors import TableNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.pipes.driver.files_table import FilesTable, latest_results
from tidemark.pipes.driver.planning_batches import pending
from tidemark.pipes.model.events import Event
from tidemark.pipes.model.files import FileStatus

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["COPY_HISTORY", "PIPE_HISTORY", "copy_history", "file_loads", "no_rows", "open_history", "pipe_history"]

COPY_HISTORY = (
    "file_name STRING, stage_location STRING, last_load_time TIMESTAMP, row_count BIGINT, row_parsed BIGINT,"
    " file_size BIGINT, first_error_message STRING, first_error_line_number BIGINT,"
    " first_error_character_position BIGINT, first_error_column_name STRING, error_count BIGINT, error_limit BIGINT,"
    " status STRING, table_catalog_name STRING, table_schema_name STRING, table_name STRING, pipe_catalog_name STRING,"
    " pipe_schema_name STRING, pipe_name STRING, pipe_received_time TIMESTAMP"
)
PIPE_HISTORY = (
    "path STRING, stageLocation STRING, fileSize BIGINT, timeReceived TIMESTAMP, lastInsertTime TIMESTAMP,"
    " rowsInserted BIGINT, rowsParsed BIGINT, errorsSeen BIGINT, errorLimit BIGINT, firstError STRING,"
    " firstErrorLineNum BIGINT, firstErrorCharacterPos BIGINT, firstErrorColumnName STRING, systemError STRING,"
    " complete BOOLEAN, status STRING"
)
_COUNTS = ("rows_parsed", "rows_loaded", "errors_seen", "error_limit")
_ERRORS = ("first_error", "first_error_line", "first_error_character", "first_error_column", "system_error")
_IN_PROGRESS = FileStatus.LOAD_IN_PROGRESS.value


def open_history(
    spark: SparkSession, place: str, options: Mapping[str, str] | None, kept: timedelta
) -> FilesTable | None:
    """The table of files at a path; None if there is none yet."""
    try:
        log = DeltaLog.open(place, options)
    except TableNotFound:
        return None
    return FilesTable(spark, log, options, kept)


def no_rows(spark: SparkSession, columns: str) -> DataFrame:
    """No rows, with these columns."""
    return spark.createDataFrame([], columns)


def file_loads(table: FilesTable, now: datetime, location: str | None = None) -> DataFrame:
    """A row for each file in each batch that is done, and for each file that waits or is being loaded.

    Columns: batch, file, size, location, status, counts and errors of the report, received_at, loaded_at. `location`:
    of files that belong to no batch yet, and so have no `batch`.
    """
    events = table.remembered(now)
    planned = events.where(F.col("event") == Event.PLANNED.value).select("batch", "file", "size", "at")
    heads = events.where(F.col("event") == Event.BATCH.value)
    places = heads.select("batch", F.get_json_object("statement", "$.location").alias("location"))
    ended = events.where(F.col("event") == Event.DONE.value).select("batch")
    done = latest_results(events).select("batch", "file", "size", "status", *_COUNTS, *_ERRORS, "loaded_at")
    received = _received(events, planned)
    of_batches = done.join(received, ["batch", "file"], "left").join(F.broadcast(places), "batch", "left")
    loading = planned.join(F.broadcast(ended), "batch", "left_anti").join(F.broadcast(places), "batch", "left")
    under_way = loading.join(received, ["batch", "file"], "left")
    under_way = under_way.select("batch", "file", "size", "location", "received_at")
    waiting = pending(table, now, location).select(
        "file", "size", F.lit(location).alias("location"), F.col("queued_at")
    )
    arrived = waiting.withColumnRenamed("queued_at", "received_at")
    running = under_way.unionByName(arrived, allowMissingColumns=True)
    names = ("batch", "file", "size", "location", "status", *_COUNTS, *_ERRORS, "received_at", "loaded_at")
    without = running.withColumn("status", F.lit(_IN_PROGRESS))
    return of_batches.select(*names).unionByName(without, allowMissingColumns=True).select(*names)


def copy_history(
    loads: DataFrame,
    table: tuple[str | None, str | None, str],
    pipe: tuple[str | None, str | None, str] | None,
    start: datetime,
    end: datetime,
) -> DataFrame:
    """Rows of COPY_HISTORY for loads that ended, or files that came and wait, between two times. `table`, `pipe`:
    database, schema and name.
    """
    of_pipe = (None, None, None) if pipe is None else pipe
    received = F.lit(None) if pipe is None else F.col("received_at")
    at = F.coalesce("loaded_at", "received_at")
    values: tuple[Column, ...] = (
        *(F.col("file"), F.concat("location", F.lit("/")), F.col("loaded_at"), F.col("rows_loaded")),
        *(F.col("rows_parsed"), F.col("size"), F.coalesce("system_error", "first_error"), F.col("first_error_line")),
        *(F.col("first_error_character"), F.col("first_error_column"), F.col("errors_seen"), F.col("error_limit")),
        *(_in_words(), *map(F.lit, table), *map(F.lit, of_pipe), received),
    )
    return _as(loads.where((at >= F.lit(start)) & (at <= F.lit(end))), COPY_HISTORY, values)


def pipe_history(loads: DataFrame) -> DataFrame:
    """The loads under the names of the source system's reports of a pipe."""
    values: tuple[Column, ...] = (
        *(F.col("file"), F.concat("location", F.lit("/")), F.col("size"), F.col("received_at"), F.col("loaded_at")),
        *(F.col("rows_loaded"), F.col("rows_parsed"), F.col("errors_seen"), F.col("error_limit")),
        *map(F.col, _ERRORS),
        *(F.col("status") != _IN_PROGRESS, F.col("status")),
    )
    return _as(loads, PIPE_HISTORY, values)


def _received(events: DataFrame, planned: DataFrame) -> DataFrame:
    """(batch, file, received_at): when the file came into the queue, or else into the batch."""
    names = (F.col("file").alias("queued_file"), F.col("at").alias("queued_at"))
    queued = events.where(F.col("event") == Event.QUEUED.value).select(*names)
    before = (F.col("file") == F.col("queued_file")) & (F.col("queued_at") <= F.col("at"))
    found = planned.join(queued, before, "left").groupBy("batch", "file")
    return found.agg(F.coalesce(F.max("queued_at"), F.max("at")).alias("received_at"))


def _in_words() -> Column:
    """LOAD_FAILED as Load failed."""
    words = {status.value: status.value.replace("_", " ").capitalize() for status in FileStatus}
    return F.create_map(*map(F.lit, chain.from_iterable(words.items())))[F.col("status")]


def _as(rows: DataFrame, columns: str, values: tuple[Column, ...]) -> DataFrame:
    named = zip(columns.split(", "), values, strict=True)
    return rows.select(*(value.cast(column.split()[1]).alias(column.split()[0]) for column, value in named))
