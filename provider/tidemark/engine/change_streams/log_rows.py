"""The log of a change stream at one version: lazy queries read it as planned, whatever is committed meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from tidemark.engine.change_streams.log_table import META_TOKEN, TOKEN_COLUMN
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.change_streams import Position

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["LogRows"]


@dataclass(frozen=True)
class LogRows:
    """All rows of the log at one version."""

    rows: DataFrame

    @classmethod
    def pinned(cls, spark: SparkSession, log_path: str, options: Mapping[str, str] | None = None) -> LogRows:
        """The log as it is now. A later VACUUM of its files fails the query. Raises TableNotFound, NotADeltaTable."""
        log = DeltaLog.open(log_path, options)
        return cls(spark.read.format("delta").option("versionAsOf", log.head()).load(log.uri))

    def meta(self, record_type: str) -> DataFrame:
        """The rows of a type that is not `data`; only its own Delta partition is read."""
        return self.rows.where((F.col(TOKEN_COLUMN) == META_TOKEN) & (F.col("record_type") == record_type))

    def data(self, token: str, start: Position, end: Position) -> DataFrame:
        """The modifications of a token in [start, end). Other tokens' files are not listed, and of its own only those
        whose commit timestamps reach into the range.
        """
        return self.rows.where((F.col(TOKEN_COLUMN) == token) & (F.col("record_type") == "data") & within(start, end))


def within(start: Position, end: Position) -> Column:
    """Whether a row's place is in [start, end). The bounds of time stand by themselves, so that files are skipped."""
    at, sequence = F.col("commit_timestamp"), F.col("record_sequence")
    begun = at >= F.lit(start.at)
    if start.sequence:
        begun &= (at > F.lit(start.at)) | (sequence >= start.sequence)
    if not end.sequence:
        return begun & (at < F.lit(end.at))
    return begun & (at <= F.lit(end.at)) & ((at < F.lit(end.at)) | (sequence < end.sequence))
