"""Tables that Tidemark creates itself. A creation may die at any moment, and two may run at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tidemark.errors import TableNotFound
from tidemark.jobs.spark_failures import SPARK_FAILURES
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.safe_commits import require_safe_commits
from tidemark.lake.storage import canonical_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

__all__ = ["make_table", "require_no_lost_commits"]

_ANY_LOG_STORE = "spark.delta.logStore.class"


def make_table(
    spark: SparkSession,
    path: str,
    columns: StructType | str,
    *,
    properties: Mapping[str, str],
    partitioned_by: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
) -> DeltaLog:
    """The table at `path`, created if it does not exist; `properties` are Delta's own.

    An append of no rows creates it. Unlike CREATE TABLE, it works in a directory in which an earlier creation died. It
    takes nothing from a table that another process creates and fills at the same time. Idempotent: a second run adds a
    commit without rows.
    """
    uri = canonical_uri(path)
    writer = spark.createDataFrame([], columns).write.format("delta").mode("append").options(**properties)
    try:
        (writer.partitionBy(*partitioned_by) if partitioned_by else writer).save(uri)
    except SPARK_FAILURES as error:
        try:
            return DeltaLog.open(uri, options)  # another process has created it
        except TableNotFound:
            raise error from None
    return DeltaLog.open(uri, options)


def require_no_lost_commits(spark: SparkSession, uri: str, *, only_writer: bool) -> None:
    """Raises CommitsMayBeLost for a table to which another driver may commit at the same time, if the storage cannot
    hold them apart. `only_writer`: whether no other does.
    """
    of_scheme = f"spark.delta.logStore.{uri.partition('://')[0]}.impl"
    log_store = spark.conf.get(of_scheme, None) or spark.conf.get(_ANY_LOG_STORE, None)
    require_safe_commits(uri, uri, log_store, only_writer=only_writer)
