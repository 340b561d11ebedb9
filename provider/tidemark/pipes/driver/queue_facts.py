"""Facts of a pipe's queue, for its status."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from tidemark.pipes.driver.files_table import FilesTable, latest_results, micros, utc
from tidemark.pipes.driver.planning_batches import pending
from tidemark.pipes.model.events import Event
from tidemark.pipes.model.files import LOADED, FileSource
from tidemark.pipes.model.status import QueueFacts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["queue_facts"]

_TIMES = ("oldest_pending_at", "last_ingested_at", "received_at", "forwarded_at")


def queue_facts(table: FilesTable, now: datetime) -> QueueFacts:
    """The files that wait, the last file that was loaded, and the newest files that came. It reads the table once."""
    waiting = pending(table, now).agg(
        F.count(F.lit(1)).alias("pending"),
        F.min_by("file", "queued_at").alias("oldest_pending"),
        F.min("queued_at").alias("oldest_pending_at"),
    )
    found = waiting.crossJoin(_ingested(table, now)).crossJoin(_received(table, now))
    plain = [name for name in found.columns if name not in _TIMES]
    (row,) = found.select(*plain, *map(micros, _TIMES)).collect()
    facts: dict[str, Any] = row.asDict()
    return QueueFacts(**{**facts, **{name: None if row[name] is None else utc(row[name]) for name in _TIMES}})


def _ingested(table: FilesTable, now: datetime) -> DataFrame:
    loaded = latest_results(table.remembered(now)).where(F.col("status").isin(*LOADED))
    return loaded.agg(
        F.max_by("file", F.struct("loaded_at", "file")).alias("last_ingested"),
        F.max("loaded_at").alias("last_ingested_at"),
    )


def _received(table: FilesTable, now: datetime) -> DataFrame:
    queued = table.remembered(now).where(F.col("event") == Event.QUEUED.value)
    told = F.when(F.col("source") == FileSource.NOTIFICATION.value, F.col("at"))
    return queued.agg(
        F.max("at").alias("received_at"), F.max_by("file", told).alias("forwarded"), F.max(told).alias("forwarded_at")
    )
