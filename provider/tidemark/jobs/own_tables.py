"""Tables that Tidemark makes itself, so that a making may die at any moment and another may be under way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tidemark.errors import TableNotFound
from tidemark.jobs.spark_failures import SPARK_FAILURES
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.storage import canonical_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

__all__ = ["make_table"]


def make_table(
    spark: SparkSession,
    path: str,
    columns: StructType | str,
    *,
    properties: Mapping[str, str],
    partitioned_by: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
) -> DeltaLog:
    """The table at `path`, where there was none at the last look; `properties` are Delta's own.

    An append of no rows makes it: that goes on in a directory in which an earlier making died, where CREATE TABLE finds
    neither a table nor room for one, and it takes nothing from a table that somebody else makes, and fills, at this
    moment. A second run leaves one more commit without rows.
    """
    uri = canonical_uri(path)
    writer = spark.createDataFrame([], columns).write.format("delta").mode("append").options(**properties)
    try:
        (writer.partitionBy(*partitioned_by) if partitioned_by else writer).save(uri)
    except SPARK_FAILURES as error:
        try:
            return DeltaLog.open(uri, options)  # another made it
        except TableNotFound:
            raise error from None
    return DeltaLog.open(uri, options)
