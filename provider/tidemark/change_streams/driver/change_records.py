"""The records that READ_<stream> answers with: data, heartbeats, children, each with its place in the order (1.3).

Such rows have the columns at (timestamp), kind (int), sequence and ChangeRecord. Sorted by the first three, the records
of all partitions have children after their parents. Heartbeats are not stored: time is cut into slots of the reader's
heartbeat from its start on. A slot without a record has a heartbeat at its end if a batch of the log ends in the slot.
Only records that are read count: those of one partition, or of all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from tidemark.change_streams.driver.log_rows import LogRows
from tidemark.change_streams.driver.records import (
    CHANGE_RECORD,
    CHILDREN,
    DATA,
    HEARTBEAT,
    assembled,
    child_record,
    data_record,
    framed,
    heartbeat_record,
)
from tidemark.change_streams.model.change_streams import MICROSECOND, Position
from tidemark.change_streams.planning.reading import ReadRange

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from pyspark.sql import Column, DataFrame, SparkSession

    from tidemark.change_streams.model.change_streams import Partition

__all__ = [
    "CHILDREN_FIRST",
    "IN_TIME",
    "PLACE",
    "child_records",
    "data_records",
    "ends_of_partitions",
    "heartbeat_records",
    "in_order",
]

PLACE = ("at", "kind", "sequence")
CHILDREN_FIRST, IN_TIME = 0, 1  # kinds: a partition has no record at its end, where its children begin
_CHILD = "struct<token: string, parent_partition_tokens: array<string>>"
_CHILDREN_DDL = f"at timestamp, sequence string, children array<{_CHILD}>"


def in_order(records: DataFrame) -> DataFrame:
    """Sorted, and only the one column of READ_<stream>."""
    return records.sort(*PLACE).select(CHANGE_RECORD)


def data_records(rows: DataFrame, as_json: bool, *beside: str) -> DataFrame:
    """The records of the log's `rows`; columns `beside` stay."""
    return assembled(rows, *beside).select(
        *beside,
        F.col("commit_timestamp").alias("at"),
        F.lit(IN_TIME).alias("kind"),
        F.col("record_sequence").alias("sequence"),
        framed(DATA, data_record(as_json), as_json),
    )


def heartbeat_records(log: LogRows, asked: ReadRange, as_json: bool) -> DataFrame:
    """The heartbeats of a range. The heartbeat at its `last` is omitted if a record has exactly that time."""
    start, every = F.unix_micros(F.lit(asked.start)), F.lit(asked.heartbeat // MICROSECOND)

    def slot(time: Column) -> Column:
        """The end of its slot, in microseconds."""
        return time + F.pmod(start - time, every)

    records = log.data(asked.token, Position(asked.start), Position(asked.until)).select("commit_timestamp")
    ends = log.windows.where((F.col("until") > F.lit(asked.start)) & (F.col("until") <= F.lit(asked.until)))
    slots = ends.select(slot(F.unix_micros("until") - 1).alias("slot")).distinct()
    taken = records.select(slot(F.unix_micros("commit_timestamp")).alias("slot")).distinct()
    latest = asked.until - MICROSECOND if asked.last is None else asked.last - asked.heartbeat
    in_range = (F.col("slot") > start) & (F.col("slot") <= F.unix_micros(F.lit(latest)))
    beats = slots.where(in_range).join(taken, "slot", "left_anti").select(F.timestamp_micros("slot").alias("at"))
    if asked.last is not None:
        at_last = records.where(F.col("commit_timestamp") == F.lit(asked.last)).limit(1)
        unless = at_last.agg(F.count("*").alias("times")).where("times = 0")
        beats = beats.unionByName(unless.select(F.lit(asked.last).alias("at")))
    return beats.select(
        "at",
        F.lit(IN_TIME).alias("kind"),
        F.lit("").alias("sequence"),
        framed(HEARTBEAT, heartbeat_record(F.col("at"), as_json), as_json),
    )


def child_records(
    spark: SparkSession, time: datetime, records: Iterable[Iterable[Partition]], as_json: bool
) -> DataFrame:
    """A child partitions record for each of `records`, all at `time`, in that order."""
    rows = [
        (time, f"{number:08d}", [(child.token, list(child.parents)) for child in children])
        for number, children in enumerate(records)
    ]
    at, sequence = F.col("at"), F.col("sequence")
    return spark.createDataFrame(rows, _CHILDREN_DDL).select(
        at,
        F.lit(CHILDREN_FIRST).alias("kind"),
        sequence,
        framed(CHILDREN, child_record(at, sequence, F.col("children"), as_json), as_json),
    )


def ends_of_partitions(log: LogRows, asked: ReadRange, as_json: bool) -> DataFrame:
    """A child partitions record for each partition that ends in the range behind its start."""
    at, first = F.col("ended"), F.lit(f"{0:08d}")
    ended = log.families.where((at > F.lit(asked.start)) & (at < F.lit(asked.until)))
    return ended.select(
        at.alias("at"),
        F.lit(CHILDREN_FIRST).alias("kind"),
        F.col("token").alias("sequence"),
        framed(CHILDREN, child_record(at, first, F.col("children"), as_json), as_json),
    )
