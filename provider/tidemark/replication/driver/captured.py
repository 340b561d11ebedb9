"""The report of a run of capture: of the batches it wrote, and of those by an attempt before it that died."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from tidemark.lake.event_logs import batches
from tidemark.model.codec import from_json
from tidemark.replication.driver.event_log import widths
from tidemark.replication.driver.wide_rows import fitted
from tidemark.replication.model.replication import TableSchema
from tidemark.replication.planning.events import Change

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemark.lake.delta_log import DeltaLog
    from tidemark.replication.model.jobs import CaptureEvents
    from tidemark.replication.sources.change_log import Found

__all__ = ["Captured", "captured_since"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class Captured:
    """`events` and `renamed` by `schema.table`; `changed`: ids of objects with a new schema; `schemas` of those that
    were read from the log.
    """

    transactions: int = 0
    events: Counter[str] = field(default_factory=Counter)
    changed: set[str] = field(default_factory=set)
    schemas: dict[str, TableSchema] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    newest: datetime | None = None

    def add(self, found: Found) -> None:
        """A batch that was written."""
        newest = None if found.newest is None else _EPOCH + timedelta(microseconds=found.newest)
        events = Counter(found.events)
        self.include(Captured(found.transactions, events, found.changed, {}, found.renamed, newest))

    def include(self, later: Captured) -> None:
        """Add the facts of a later part."""
        self.transactions += later.transactions
        self.events.update(later.events)
        self.changed |= later.changed
        self.schemas.update(later.schemas)
        self.renamed.update(later.renamed)
        self.newest = later.newest or self.newest


def captured_since(spark: SparkSession, log: DeltaLog, app_id: str, request: CaptureEvents, number: int) -> Captured:
    """The report of the log's batches behind `number`, by one look into them."""
    found = Captured()
    for batch in batches(log, app_id):
        if batch.number <= number:
            break
        found.transactions += batch.transactions
    with fitted(spark, *widths(log, app_id)):
        _look_into(spark, log, request, number, found)
    return found


def _look_into(spark: SparkSession, log: DeltaLog, request: CaptureEvents, number: int, found: Captured) -> None:
    names = {one.source_id: one.name.text for one in request.objects}
    place = F.struct("position", "sequence")
    is_schema = F.col("change") == F.lit(Change.SCHEMA.value)
    rows = spark.read.format("delta").load(log.uri).where(F.col("batch") > number)
    for row in (
        rows.where(F.col("object_id").isNotNull())
        .groupBy("object_id")
        .agg(
            F.count_if(~is_schema).alias("events"),
            F.max_by(F.when(is_schema, F.col("payload")), F.when(is_schema, place)).alias("schema"),
            F.max_by(F.concat_ws(".", "source_metadata.schema", "source_metadata.table"), place).alias("named"),
            F.unix_micros(F.max("source_timestamp")).alias("newest"),
        )
        .collect()
    ):
        oid, name = row["object_id"], names.get(row["object_id"])
        if name is None:
            continue
        found.events[name] += row["events"]
        if row["schema"] is not None:
            found.schemas[oid] = from_json(TableSchema, row["schema"])
            found.changed.add(oid)
        if row["named"] != name:
            found.renamed[name] = row["named"]
        newest = _EPOCH + timedelta(microseconds=row["newest"])
        found.newest = newest if found.newest is None else max(found.newest, newest)
