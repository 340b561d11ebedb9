"""Partial aggregates of a kept query: of signed rows, net of each other, and with new extreme values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, MapType, StringType, StructType

from tidemark.changes.driver.views.driver_rows import in_driver
from tidemark.changes.driver.views.plain import over_frames
from tidemark.model.views import KEPT
from tidemark.streams.model.partial_columns import COUNT, EPOCH, GONE, GROUP, MAXIMUM, MINIMUM

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "ANSI",
    "has_extremes",
    "kept_columns",
    "needs_net_rows",
    "net_partials",
    "of_groups",
    "signed_sums",
    "with_extremes",
]

ANSI = {"spark.sql.ansi.enabled": "true"}  # a sum that overflows is an error, never NULL
_OF_ANY_LENGTH = (StringType, BinaryType, ArrayType, MapType, StructType)
_OLD, _NEW, _SOUGHT, _LOST = "old_", "new_", "sought_", "tidemark_lost"


def signed_sums(session: SparkSession, rows: DataFrame, sums: str) -> DataFrame:
    """Partial aggregates of signed rows. An overflow fails the query."""
    return over_frames(session, sums, {KEPT: rows}, ANSI)


def needs_net_rows(sums: str) -> bool:
    """Whether the aggregates of the text need rows that came or went in fact. Counts and sums take all signed rows."""
    return GONE in sums


def has_extremes(sums: DataFrame) -> bool:
    """Whether minima or maxima are among the partial aggregates."""
    return EPOCH in sums.columns


def kept_columns(sums: DataFrame) -> DataFrame:
    """The columns that the kept table has."""
    return sums.drop(*(name for name in sums.columns if name.startswith(GONE)))


def net_partials(rows: DataFrame) -> DataFrame:
    """One row for each group."""
    groups = _groups(rows)
    numbers = [name for name in rows.columns if name not in groups]
    return rows.groupBy(*groups).agg(*(_net(name, rows).alias(name) for name in numbers))


def with_extremes(sums: DataFrame, kept: DataFrame, at_end: Callable[[DataFrame | None], DataFrame]) -> DataFrame:
    """The partial aggregates `sums` of changes, with the extreme values that the groups have after them.

    A group that lost an extreme value, or all its rows, begins a new epoch: older values no longer count. `at_end`: the
    partial aggregates of the query at the window's end, of the groups in the frame (None: there is one group). Few
    groups with short values are computed now, once, and kept in the driver.
    """
    groups = _groups(sums)
    changed = _beside(sums, net_partials(of_groups(kept, sums)), groups, _OLD)
    extremes = [name for name in sums.columns if name.startswith((MINIMUM, MAXIMUM))]
    epoch = F.coalesce(F.col(f"{_OLD}{EPOCH}"), F.lit(0))
    rows = F.coalesce(F.col(f"{_OLD}{COUNT}"), F.lit(0)) + F.col(COUNT)
    lost = reduce(Column.__or__, map(_is_lost, extremes))
    marked = changed.withColumn(_LOST, F.coalesce(lost, F.lit(False)))
    if not any(isinstance(sums.schema[name].dataType, _OF_ANY_LENGTH) for name in extremes):
        marked = _computed(marked)
    sought = marked.where(F.col(_LOST) & (rows > 0)).select(*groups)
    if sought.isEmpty():
        found = marked.select("*", *(F.lit(None).cast(sums.schema[n].dataType).alias(f"{_NEW}{n}") for n in extremes))
    else:
        found = _beside(marked, at_end(sought if groups else None).select(*groups, *extremes), groups, _NEW)
    begins = F.col(_LOST) | (rows <= 0)
    shown = {name: F.when(begins, F.col(f"{_NEW}{name}")).otherwise(F.col(name)) for name in extremes}
    shown[EPOCH] = F.when(begins, epoch + 1).otherwise(epoch)
    return kept_columns(found.select(*(shown.get(name, F.col(name)).alias(name) for name in sums.columns)))


def _computed(rows: DataFrame) -> DataFrame:
    known = in_driver(rows)
    return rows if known is None else rows.sparkSession.createDataFrame(known, schema=rows.schema)


def _is_lost(name: str) -> Column:
    """Whether the value that went was the extreme one, and none of the rows that came has it or a better one."""
    gone = F.col(f"{GONE}{name.removeprefix('tidemark_')}")
    old, came = F.col(f"{_OLD}{name}"), F.col(name)
    least = name.startswith(MINIMUM)
    was_it = gone <= old if least else gone >= old
    is_back = came <= gone if least else came >= gone
    return gone.isNotNull() & F.coalesce(was_it, F.lit(True)) & ~F.coalesce(is_back, F.lit(False))


def _net(name: str, rows: DataFrame) -> Column:
    """Of extreme values that of the newest epoch, even NULL: older values never count again."""
    column = F.col(name)
    if name.startswith(MINIMUM):
        return F.min_by(column, F.struct(-F.col(EPOCH), column.isNull(), column))
    if name.startswith(MAXIMUM):
        return F.max_by(column, F.struct(F.col(EPOCH), column.isNotNull(), column))
    if name == EPOCH:
        return F.max(column)
    return F.sum(column).cast(rows.schema[name].dataType)


def _groups(rows: DataFrame) -> list[str]:
    return [name for name in rows.columns if name.startswith(GROUP)]


def of_groups(rows: DataFrame, others: DataFrame) -> DataFrame:
    """The rows whose group is in `others`, which has few; all rows if there are no groups."""
    groups = _groups(rows)
    if not groups:
        return rows
    sought = others.select(*(F.col(name).alias(f"{_SOUGHT}{name}") for name in groups))
    return rows.join(sought.hint("broadcast"), _same(groups, _SOUGHT), "left_semi")


def _beside(rows: DataFrame, others: DataFrame, groups: Sequence[str], prefix: str) -> DataFrame:
    """Each row with the columns of its group in `others`, which get the prefix."""
    renamed = others.select(*(F.col(name).alias(f"{prefix}{name}") for name in others.columns))
    if not groups:
        return rows.join(renamed, F.lit(True), "left")
    return rows.join(renamed, _same(groups, prefix), "left").drop(*(f"{prefix}{name}" for name in groups))


def _same(groups: Sequence[str], prefix: str) -> Column:
    return reduce(Column.__and__, (F.col(name).eqNullSafe(F.col(f"{prefix}{name}")) for name in groups))
