"""Changes of a view by key columns: the view's rows at both ends of a window, compared key by key.

It needs no row ids, so row tracking may have been off. A base table may have been replaced if its log continues.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tidemark.changes.driver.by_key import key_not_unique, key_text, with_keys_for_ids
from tidemark.changes.driver.net import CHANGE, exploded
from tidemark.changes.driver.views.bases import BaseRows
from tidemark.changes.driver.views.opening import open_rows
from tidemark.changes.driver.views.scans import Reading
from tidemark.changes.planning.views.terms import Role, column_name, whole
from tidemark.jobs.schemas import struct_type
from tidemark.model.streams import ACTION, IS_UPDATE, ROW_ID, BaseWindow, StreamMode
from tidemark.model.views import ViewQuery

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["explain_view_by_key", "read_view_by_key"]

_OLD, _NEW = -1, 1


def read_view_by_key(
    spark: SparkSession,
    query: ViewQuery,
    windows: Sequence[BaseWindow],
    keys: Sequence[str],
    now: datetime,
    options: Mapping[str, str] | None = None,
    *,
    reader: str,
) -> DataFrame:
    """The changes of a view in a window: the view's columns, then METADATA$ACTION, METADATA$ISUPDATE, METADATA$ROW_ID.
    METADATA$ROW_ID is the digest of the view, a colon, and the key as canonical JSON.

    Arguments as in `read_view_changes`. It is lazy, and always gives the same rows. The query fails with KeyNotUnique
    if a key has several rows at an end. Raises SourceRecreated (R83), StreamStale (R84), VersionVacuumed,
    IncompatibleSchemaChange.
    """
    bases = open_rows(query, windows, options, reader)
    kind = struct_type(query.schema_json)
    starts = [replace(base, window=replace(base.window, end=base.window.start)) for base in bases]
    old = _rows(spark, query, starts, now, kind).withColumn("side", F.lit(_OLD))
    new = _rows(spark, query, bases, now, kind).withColumn("side", F.lit(_NEW))
    sides = old.unionByName(new).transform(with_keys_for_ids, keys).transform(_paired)
    failure = key_not_unique(
        stream=reader,
        table=query.name,
        keys=keys,
        start=sum(window.start for window in windows),
        end=sum(window.end for window in windows),
        old=F.col("times_old"),
        new=F.col("times_new"),
    )
    return _shown(exploded(sides, failure), query, kind)


def explain_view_by_key(
    query: ViewQuery,
    windows: Sequence[BaseWindow],
    keys: Sequence[str],
    options: Mapping[str, str] | None = None,
    *,
    reader: str,
) -> dict[str, Any]:
    """The plan of `read_view_by_key`, ready for JSON, without Spark, with the same errors."""
    bases = open_rows(query, windows, options, reader)
    return {
        "view": query.name,
        "mode": StreamMode.STANDARD.value,
        "way": "whole",
        "why": f"it compares by {', '.join(keys)}",
        "bases": [
            {"table": base.window.table.name, "start": base.window.start, "end": base.window.end} for base in bases
        ],
    }


def _rows(
    spark: SparkSession, query: ViewQuery, bases: Sequence[BaseRows], now: datetime, kind: StructType
) -> DataFrame:
    """The view's rows at the end of the windows of `bases`, as `image`."""
    found = Reading(spark, query, bases, {}, StreamMode.STANDARD).whole(whole(query, Role.NEW, now), ())
    columns = [F.col(column_name(n)).cast(field.dataType).alias(field.name) for n, field in enumerate(kind.fields)]
    return found.select(F.struct(*columns).alias("image"))


def _paired(rows: DataFrame) -> DataFrame:
    """One row for each key: row_id, times_old, times_new, old, new, version."""

    def times(side: int) -> Column:
        return F.sum(F.when(F.col("side") == side, F.lit(1)).otherwise(F.lit(0)))

    def image(side: int) -> Column:
        return F.first(F.when(F.col("side") == side, F.col("image")), ignorenulls=True)

    return (
        rows.groupBy("row_id")
        .agg(
            times(_OLD).alias("times_old"),
            times(_NEW).alias("times_new"),
            image(_OLD).alias("old"),
            image(_NEW).alias("new"),
        )
        .withColumn("version", F.lit(0).cast("bigint"))
    )


def _shown(changes: DataFrame, query: ViewQuery, kind: StructType) -> DataFrame:
    change = F.col(CHANGE)
    return changes.select(
        *(change.getField("image").getField(field.name).alias(field.name) for field in kind.fields),
        change.getField("action").alias(ACTION),
        change.getField("is_update").alias(IS_UPDATE),
        F.concat(F.lit(f"{query.digest}:"), key_text(F.col("row_id"))).alias(ROW_ID),
    )
