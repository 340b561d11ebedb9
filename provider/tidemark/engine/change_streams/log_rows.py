"""The log of a change stream at one version: lazy queries read it as planned, whatever is committed meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemark.engine.change_streams.log_table import META_TOKEN, TOKEN_COLUMN, TRIM_TOKEN
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.change_streams import Partition, Position

if TYPE_CHECKING:
    from pyspark.sql import Column, Row, SparkSession

__all__ = ["About", "LogRows"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PARTITION = ("token", "lo", "hi", "parents", "commit_timestamp AS started")
_TIMED = ("window", "trimmed")


@dataclass(frozen=True)
class About:
    """`family`: the partition of a token, and those that name it as a parent. `captured_until`: up to where everything
    is in the log, exclusive. `trimmed_until`: data before it may be gone; None: nothing is.
    """

    family: tuple[Partition, ...]
    captured_until: datetime
    trimmed_until: datetime | None


@dataclass(frozen=True)
class LogRows:
    """All rows of the log, lazy. What it answers itself costs one small query each."""

    rows: DataFrame

    @classmethod
    def pinned(cls, spark: SparkSession, log_path: str, options: Mapping[str, str] | None = None) -> LogRows:
        """The log as it is now. A later VACUUM of its files fails the query. Raises TableNotFound, NotADeltaTable."""
        log = DeltaLog.open(log_path, options)
        return cls(spark.read.format("delta").option("versionAsOf", log.head()).load(log.uri))

    @property
    def partitions(self) -> DataFrame:
        """token, lo, hi, parents, started (timestamp); only the Delta partition of what is no data is read."""
        return self._meta("partition").selectExpr(*_PARTITION)

    @property
    def windows(self) -> DataFrame:
        """One column, `until` (timestamp): of each batch, before which everything is in the log."""
        return self._meta("window").select(F.col("commit_timestamp").alias("until"))

    @property
    def all_data(self) -> DataFrame:
        """The modifications of all tokens."""
        return self.rows.where(F.col("record_type") == "data")

    def data(self, token: str, start: Position, end: Position) -> DataFrame:
        """The modifications of a token in [start, end). Other tokens' files are not listed, and of its own only those
        whose commit timestamps reach into the range.
        """
        return self.all_data.where((F.col(TOKEN_COLUMN) == token) & _within(start, end))

    def about(self, token: str, published_until: datetime) -> About:
        """What there is to know of a token. Windows that the store knows of are not read."""
        family = (F.col("token") == token) | F.array_contains("parents", token)
        further = self._meta("window").where(F.col("commit_timestamp") > F.lit(published_until))
        parts = (self._meta("partition").where(family), further, self._trimmed)
        rows = reduce(DataFrame.unionByName, parts).selectExpr("record_type", *_PARTITION)
        found = rows.withColumn("started", F.unix_micros("started")).collect()
        times = {kind: [_instant(row["started"]) for row in found if row["record_type"] == kind] for kind in _TIMED}
        return About(
            family=tuple({_partition(row) for row in found if row["record_type"] == "partition"}),
            captured_until=max((published_until, *times["window"])),
            trimmed_until=max(times["trimmed"], default=None),
        )

    def open_at(self, time: datetime) -> tuple[Partition, ...]:
        """The partitions that own `time`, by token: begun, and without a child that has."""
        begun = self.partitions.where(F.col("started") <= F.lit(time))
        ended = begun.select(F.explode("parents").alias("token"))
        found = _collected(begun.join(ended, "token", "left_anti"))
        return tuple(sorted(found, key=lambda partition: partition.token))

    def trimmed_until(self) -> datetime | None:
        """Data before it may be gone; None: nothing is."""
        (row,) = self._trimmed.select(F.unix_micros(F.max("commit_timestamp"))).collect()
        return None if row[0] is None else _instant(row[0])

    @property
    def _trimmed(self) -> DataFrame:
        return self.rows.where(F.col(TOKEN_COLUMN) == TRIM_TOKEN)

    def _meta(self, record_type: str) -> DataFrame:
        return self.rows.where((F.col(TOKEN_COLUMN) == META_TOKEN) & (F.col("record_type") == record_type))


def _within(start: Position, end: Position) -> Column:
    """Whether a row's place is in [start, end). The bounds of time stand by themselves, so that files are skipped."""
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
    return _EPOCH + timedelta(microseconds=micros)
