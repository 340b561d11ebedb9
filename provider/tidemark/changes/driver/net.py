"""Changes from the rows of both sides: equal states of both sides cancel, and the rest is paired by row id."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tidemark.changes.driver.by_key import key_not_unique
from tidemark.changes.driver.content import same_content
from tidemark.changes.planning.sets.forms import ADDED, REMOVED
from tidemark.changes.planning.sets.plan import MOST_KEYS_TO_BROADCAST, Candidate, ChangePlan, Netting, Origin

__all__ = ["CHANGE", "changes_of_sides", "exploded", "images_of_sides", "net", "net_images", "unpaired"]

CHANGE = "change"  # struct<action: string, is_update: boolean, image: struct>, beside `version` and `row_id`

_ROWS_PER_PARTITION = 250_000


def net(rows: DataFrame, plan: ChangePlan) -> DataFrame:
    """The smallest change set of the signed `rows` of `plan`, or of each of its commits: version, row_id and `change`.

    The plan's row counts size the shuffle, under any settings of the session. If a row id or key remains more than once
    on a side, the query fails.
    """
    if plan.netting is Netting.ONE_SIDE:
        return unpaired(rows)
    return changes_of_sides(_sides(rows, plan), plan)


def net_images(rows: DataFrame, plan: ChangePlan) -> DataFrame:
    """The changes of `net` with one row for each changed row: version, row_id, `old` and `new`. Either `old` or `new`
    may be NULL. An update has both, and they differ.
    """
    if plan.netting is Netting.ONE_SIDE:
        old, new = (F.when(F.signum("side") == side, F.col("image")) for side in (REMOVED, ADDED))
        return rows.select("version", "row_id", old.alias("old"), new.alias("new"))
    return images_of_sides(_sides(rows, plan), plan)


def changes_of_sides(sides: DataFrame, plan: ChangePlan) -> DataFrame:
    """The rows of `net` from paired sides: version, row_id, times_old, times_new, old, new."""
    return sides.transform(exploded, _too_many(plan))


def images_of_sides(sides: DataFrame, plan: ChangePlan) -> DataFrame:
    """The rows of `net_images` from paired sides."""
    kind = sides.schema["new"].dataType
    assert isinstance(kind, StructType)
    old, new = F.col("old"), F.col("new")
    is_double = (F.col("times_old") > 1) | (F.col("times_new") > 1)
    is_update = (F.col("times_old") > 0) & (F.col("times_new") > 0)
    checked = F.when(is_double, _too_many(plan).cast("boolean")).otherwise(~is_update | ~same_content(old, new, kind))
    return sides.where(checked).select("version", "row_id", "old", "new")


def _sides(rows: DataFrame, plan: ChangePlan) -> DataFrame:
    """Each row that was not only carried over, with paired sides: version, row_id, times_old, times_new, old, new."""
    count = plan.rows() - plan.rows_born
    partitions = count // _ROWS_PER_PARTITION + 1
    each = plan.candidate is Candidate.EACH
    keys = ["version", "row_id"] if each else ["row_id"]
    if plan.netting is Netting.AGGREGATE:
        return rows.transform(_paired, partitions, keys)
    if plan.netting is Netting.COMMIT_VERSION:
        is_carried = F.col("commit") < F.col("version") if each else F.col("commit") <= plan.start
        return rows.transform(_without_carried, is_carried, keys).transform(_paired, partitions, keys)
    ids = rows.select("side", *keys, "commit").repartition(partitions, *keys).transform(_ids_not_cancelled, keys)
    if count <= MOST_KEYS_TO_BROADCAST:
        return rows.join(F.broadcast(ids), keys, "left_semi").transform(_paired, partitions, keys)
    kept = rows.repartition(partitions, *keys).join(ids, keys, "left_semi")
    return kept.transform(_paired, partitions, keys)


def unpaired(rows: DataFrame) -> DataFrame:
    """The changes, if every row is one."""
    action = F.when(F.col("side") == REMOVED, F.lit("DELETE")).otherwise(F.lit("INSERT"))
    change = F.struct(action.alias("action"), F.lit(False).alias("is_update"), F.col("image").alias("image"))
    return rows.select("version", "row_id", change.alias(CHANGE))


def _without_carried(rows: DataFrame, is_carried: Column, keys: list[str]) -> DataFrame:
    """The rows without those that rewrites carried over. On the added side these are rows that no commit of the window
    changed, on the removed side their partners. It reads narrow columns of the added side, and images once.
    """
    added = rows.where(F.col("origin") != Origin.REMOVED)
    removed = rows.where(F.col("origin") == Origin.REMOVED)
    partners = F.broadcast(added.where(is_carried).select(*keys))
    return added.where(~is_carried).unionByName(removed.join(partners, keys, "left_anti"))


def _ids_not_cancelled(rows: DataFrame, keys: list[str]) -> DataFrame:
    """Keys of rows that were not only carried over, from narrow columns alone."""
    return rows.groupBy(*keys, "commit").agg(F.sum("side").alias("count")).where("count != 0").select(*keys)


def _paired(rows: DataFrame, partitions: int, keys: list[str]) -> DataFrame:
    """Sides without equal (row_id, commit), as signed multisets, paired by `keys`: row_id, and version for every
    change.
    """
    states = (
        rows.repartition(partitions, *keys)
        .groupBy(*keys, "commit")
        .agg(F.sum("side").alias("count"), F.first("image").alias("image"))
    )
    old, new = (F.when(F.signum("count") == side, F.col("image")) for side in (REMOVED, ADDED))
    sides = (
        states.where("count != 0")
        .groupBy(*keys)
        .agg(
            F.sum(F.greatest(-F.col("count"), F.lit(0))).alias("times_old"),
            F.sum(F.greatest(F.col("count"), F.lit(0))).alias("times_new"),
            F.first(old, ignorenulls=True).alias("old"),
            F.first(new, ignorenulls=True).alias("new"),
        )
    )
    return sides if "version" in keys else sides.withColumn("version", F.lit(0).cast("bigint"))


def exploded(sides: DataFrame, too_many: Column) -> DataFrame:
    """One row for each half of a change: version, row_id, `change`. `too_many` fails the query."""
    kind = sides.schema["new"].dataType
    assert isinstance(kind, StructType)
    return sides.select("version", "row_id", F.explode(_changes(kind, too_many)).alias(CHANGE))


def _too_many(plan: ChangePlan) -> Column:
    """The error of a repeated row id or key on a side. The former is a defect of ours, the latter one of the table."""
    if not plan.keys:
        problem = F.lit("Tidemark: internal error: more than one image on a side for row id ")
        return F.raise_error(F.concat(problem, F.col("row_id").cast("string")))
    return key_not_unique(
        stream=plan.reader,
        table=plan.table_uri,
        keys=plan.keys,
        start=plan.start,
        end=plan.end,
        old=F.col("times_old"),
        new=F.col("times_new"),
    )


def _changes(kind: StructType, too_many: Column) -> Column:
    old, new = F.col("old"), F.col("new")
    cases = [
        ((F.col("times_old") > 1) | (F.col("times_new") > 1), too_many),
        (F.col("times_old") == 0, F.array(_change("INSERT", False, new))),
        (F.col("times_new") == 0, F.array(_change("DELETE", False, old))),
        (~same_content(old, new, kind), F.array(_change("DELETE", True, old), _change("INSERT", True, new))),
    ]
    (first, value), *more = cases
    return reduce(lambda chain, case: chain.when(*case), more, F.when(first, value))


def _change(action: str, is_update: bool, image: Column) -> Column:
    return F.struct(F.lit(action).alias("action"), F.lit(is_update).alias("is_update"), image.alias("image"))
