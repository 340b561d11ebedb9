"""Rows of both sides become changes: states that both sides have cancel, what is left is paired by row id."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tidemark.engine.changes.content import same_content
from tidemark.planning.change_sets import ADDED, REMOVED, Netting

__all__ = ["CHANGE", "net"]

CHANGE = "change"  # struct<action: string, is_update: boolean, image: struct>, beside `row_id`

_ROWS_PER_PARTITION = 250_000
_MOST_KEYS_TO_BROADCAST = 4_000_000  # of bigint: some 100 MB in the driver at the worst


def net(rows: DataFrame, netting: Netting, count: int) -> DataFrame:
    """The least change set of `rows`: side (int), row_id, commit (bigint), image (struct).

    Returns row_id and `change`. `count` is how many rows there are; it sizes the shuffle, whatever the session says.
    A row id that is left more than once on a side fails the query: it would be a defect, never a result.
    """
    if netting is Netting.ONE_SIDE:
        return rows.select("row_id", _one_sided().alias(CHANGE))
    partitions = count // _ROWS_PER_PARTITION + 1
    if netting is Netting.AGGREGATE:
        return rows.repartition(partitions, "row_id").transform(_paired)
    keys = rows.select("side", "row_id", "commit").repartition(partitions, "row_id").transform(_ids_not_cancelled)
    if count <= _MOST_KEYS_TO_BROADCAST:
        return rows.join(F.broadcast(keys), "row_id", "left_semi").repartition(partitions, "row_id").transform(_paired)
    return rows.repartition(partitions, "row_id").join(keys, "row_id", "left_semi").transform(_paired)


def _ids_not_cancelled(rows: DataFrame) -> DataFrame:
    """Ids of rows that are not merely carried over; only three narrow columns are read for it."""
    return rows.groupBy("row_id", "commit").agg(F.sum("side").alias("count")).where("count != 0").select("row_id")


def _paired(rows: DataFrame) -> DataFrame:
    """Cancel equal (row_id, commit) as signed multisets, then pair by row id; `rows` are clustered by row id."""
    states = rows.groupBy("row_id", "commit").agg(F.sum("side").alias("count"), F.first("image").alias("image"))
    old, new = (F.when(F.signum("count") == side, F.col("image")) for side in (REMOVED, ADDED))
    sides = (
        states.where("count != 0")
        .groupBy("row_id")
        .agg(
            F.sum(F.greatest(-F.col("count"), F.lit(0))).alias("times_old"),
            F.sum(F.greatest(F.col("count"), F.lit(0))).alias("times_new"),
            F.first(old, ignorenulls=True).alias("old"),
            F.first(new, ignorenulls=True).alias("new"),
        )
    )
    kind = sides.schema["new"].dataType
    assert isinstance(kind, StructType)
    return sides.select("row_id", F.explode(_changes(kind)).alias(CHANGE))


def _changes(kind: StructType) -> Column:
    old, new = F.col("old"), F.col("new")
    too_many = F.concat(
        F.lit("Tidemark: internal error: more than one image on a side for row id "), F.col("row_id").cast("string")
    )
    cases = [
        ((F.col("times_old") > 1) | (F.col("times_new") > 1), F.raise_error(too_many)),
        (F.col("times_old") == 0, F.array(_change("INSERT", False, new))),
        (F.col("times_new") == 0, F.array(_change("DELETE", False, old))),
        (~same_content(old, new, kind), F.array(_change("DELETE", True, old), _change("INSERT", True, new))),
    ]
    (first, value), *more = cases
    return reduce(lambda chain, case: chain.when(*case), more, F.when(first, value))


def _one_sided() -> Column:
    deleted = F.col("side") == REMOVED
    action = F.when(deleted, F.lit("DELETE")).otherwise(F.lit("INSERT"))
    return F.struct(action.alias("action"), F.lit(False).alias("is_update"), F.col("image").alias("image"))


def _change(action: str, is_update: bool, image: Column) -> Column:
    return F.struct(F.lit(action).alias("action"), F.lit(is_update).alias("is_update"), image.alias("image"))
