"""The log of a change stream at one version: lazy queries read it as planned, even if later versions are committed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemark.change_streams.driver.log_table import (
    EXPIRED_TOKENS,
    EXPIRED_TYPES,
    LOG_COLUMNS,
    LOG_DDL,
    META_TOKEN,
    TOKEN_COLUMN,
)
from tidemark.change_streams.model.change_streams import EPOCH, MICROSECOND, Partition, Position
from tidemark.lake.delta_log import DeltaLog

if TYPE_CHECKING:
    from pyspark.sql import Column, Row, SparkSession

__all__ = ["About", "LogRows"]

_PARTITION = ("token", "lo", "hi", "parents", "commit_timestamp AS started")


@dataclass(frozen=True)
class About:
    """`family`: the partition of a token, and those that name it as a parent. `captured_until`: up to where everything
    is in the log, exclusive. `expired_until`: data before it may be gone; None: nothing is.
    """

    family: tuple[Partition, ...]
    captured_until: datetime
    expired_until: datetime | None


@dataclass(frozen=True)
class LogRows:
    """All rows of the log, lazy. Every answer of its own costs one small query."""

    rows: DataFrame

    @classmethod
    def pinned(cls, spark: SparkSession, log_path: str, options: Mapping[str, str] | None = None) -> LogRows:
        """The log as it is now. A later VACUUM of its files fails the query. Raises TableNotFound, NotADeltaTable."""
        log = DeltaLog.open(log_path, options)
        return cls(spark.read.format("delta").option("versionAsOf", log.head()).load(log.uri))

    @classmethod
    def moving(cls, spark: SparkSession, log_path: str, options: Mapping[str, str] | None = None) -> LogRows:
        """The log as it is whenever a query runs. Raises TableNotFound, NotADeltaTable."""
        return cls(spark.read.format("delta").load(DeltaLog.open(log_path, options).uri))

    @classmethod
    def before_capture(cls, spark: SparkSession, partitions: Iterable[Partition]) -> LogRows:
        """The rows that the first batch will write about the partitions that already exist."""
        rows = []
        for one in partitions:
            row = {TOKEN_COLUMN: META_TOKEN, "record_type": "partition", "commit_timestamp": one.start, "batch": 0}
            row |= {"token": one.token, "lo": one.lo, "hi": one.hi, "parents": list(one.parents)}
            rows.append(tuple(row.get(name) for name in LOG_COLUMNS))
        return cls(spark.createDataFrame(rows, LOG_DDL))

    @property
    def partitions(self) -> DataFrame:
        """token, lo, hi, parents, started (timestamp); only the Delta partition of what is no data is read."""
        return self._meta("partition").selectExpr(*_PARTITION)

    @property
    def windows(self) -> DataFrame:
        """One column, `until` (timestamp): of each batch, before which everything is in the log."""
        return self._meta("window").select(F.col("commit_timestamp").alias("until"))

    @property
    def expirations(self) -> DataFrame:
        """One column, `until` (timestamp): data before it may be gone."""
        return self._expired.select(F.col("commit_timestamp").alias("until"))

    @property
    def all_data(self) -> DataFrame:
        """The modifications of all tokens."""
        return self.rows.where(F.col("record_type") == "data")

    def data(self, token: str | None, start: Position, end: Position) -> DataFrame:
        """The modifications in [start, end) of a token, or, without one, of all: whole transactions then. Other tokens'
        files are not listed, and of its own only those whose commit timestamps reach into the range.
        """
        of_token = self.all_data if token is None else self.all_data.where(F.col(TOKEN_COLUMN) == token)
        return of_token.where(_within(start, end))

    @property
    def families(self) -> DataFrame:
        """token, started, ended (null while it is active), children (array<struct<token, parent_partition_tokens>>, by
        token): one row for each partition.
        """
        child = F.struct("token", F.col("parents").alias("parent_partition_tokens"))
        born = self.partitions.select(F.explode("parents").alias("parent"), child.alias("child"), "started").distinct()
        ends = born.groupBy("parent").agg(
            F.min("started").alias("ended"), F.array_sort(F.collect_list("child")).alias("children")
        )
        family = self.partitions.distinct().join(ends, F.col("token") == F.col("parent"), "left")
        return family.select("token", "started", "ended", "children")

    def about(self, token: str, published_until: datetime) -> About:
        """Everything that the log knows of a token. Windows that the store knows of are not read."""
        family = (F.col("token") == token) | F.array_contains("parents", token)
        further = self._meta("window").where(F.col("commit_timestamp") > F.lit(published_until))
        parts = (self._meta("partition").where(family), further, self._expired)
        rows = reduce(DataFrame.unionByName, parts).selectExpr("record_type", *_PARTITION)
        found = rows.withColumn("started", F.unix_micros("started")).collect()
        windows = [_instant(row["started"]) for row in found if row["record_type"] == "window"]
        expired = [_instant(row["started"]) for row in found if row["record_type"] in EXPIRED_TYPES]
        return About(
            family=tuple({_partition(row) for row in found if row["record_type"] == "partition"}),
            captured_until=max((published_until, *windows)),
            expired_until=max(expired, default=None),
        )

    def captured_until(self, time: datetime | None, published_until: datetime) -> datetime:
        """The time until which, exclusive, the log has everything. With a `time`, windows are read only if the store
        does not know it to be before that end.
        """
        if time is not None and time <= published_until:
            return published_until
        (row,) = self.windows.select(F.unix_micros(F.max("until"))).collect()
        return published_until if row[0] is None else max(published_until, _instant(row[0]))

    def open_at(self, time: datetime) -> tuple[Partition, ...]:
        """The partitions that own `time`, by token: begun, and without a child that has."""
        begun = self.partitions.where(F.col("started") <= F.lit(time))
        ended = begun.select(F.explode("parents").alias("token"))
        found = _collected(begun.join(ended, "token", "left_anti"))
        return tuple(sorted(found, key=lambda partition: partition.token))

    def batches_until(self, time: datetime) -> tuple[int, datetime] | None:
        """The newest batch that ends at `time` or before, and its end; None: there is none."""
        row = self._meta("window").where(F.col("commit_timestamp") <= F.lit(time))
        (found,) = row.select(F.max("batch"), F.unix_micros(F.max("commit_timestamp"))).collect()
        return None if found[0] is None else (found[0], _instant(found[1]))

    def newest_batch(self) -> int:
        """The number of the newest batch. There is one."""
        (row,) = self._meta("window").select(F.max("batch")).collect()
        return int(row[0])

    def expired_until(self) -> datetime | None:
        """Data before it may be gone; None: nothing is."""
        (row,) = self._expired.select(F.unix_micros(F.max("commit_timestamp"))).collect()
        return None if row[0] is None else _instant(row[0])

    @property
    def _expired(self) -> DataFrame:
        return self.rows.where(F.col(TOKEN_COLUMN).isin(*EXPIRED_TOKENS))

    def _meta(self, record_type: str) -> DataFrame:
        return self.rows.where((F.col(TOKEN_COLUMN) == META_TOKEN) & (F.col("record_type") == record_type))


def _within(start: Position, end: Position) -> Column:
    """Whether a row's place is in [start, end). The bounds of time are conditions of their own, so that files are
    skipped.
    """
    at, sequence = F.col("commit_timestamp"), F.col("record_sequence")
    begun = at >= F.lit(start.at)
    if start.sequence:
        begun &= (at > F.lit(start.at)) | (sequence >= start.sequence)
    if not end.sequence:
        return begun & (at < F.lit(end.at))
    return begun & (at <= F.lit(end.at)) & ((at < F.lit(end.at)) | (sequence < end.sequence))


def _collected(partitions: DataFrame) -> tuple[Partition, ...]:
    rows = partitions.withColumn("started", F.unix_micros("started")).collect()
    return tuple({_partition(row) for row in rows})


def _partition(row: Row) -> Partition:
    return Partition(row["token"], row["lo"], row["hi"], tuple(row["parents"] or ()), _instant(row["started"]))


def _instant(micros: int) -> datetime:
    return EPOCH + micros * MICROSECOND
