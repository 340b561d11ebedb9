"""Between which keys a merge can match rows of its target. Delta skips the target's files and partitions outside."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ByteType, DataType, DateType, IntegerType, LongType, ShortType, StringType

from tidemark.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import Row

__all__ = ["Key", "key_range", "rows_in_range"]

_WITH_BOUNDS = (ByteType, ShortType, IntegerType, LongType, DateType)
_LONGEST_TEXT = 1_000
"""Characters of a bound, which is a part of the query's plan."""


@dataclass(frozen=True)
class Key:
    """A column of a merge's key: its name in the changes, the column of the target, and the type of both."""

    name: str
    target: Column
    data_type: DataType

    @property
    def has_bounds(self) -> bool:
        """False for types whose order differs between writers, or by collation."""
        return isinstance(self.data_type, _WITH_BOUNDS) or self.data_type == StringType()


def key_range(keys: Iterable[Key]) -> Column:
    """An aggregate of the changes for `rows_in_range`: of each key the least value, the greatest, and whether some are
    NULL.
    """
    values = [F.col(quoted(key.name)) for key in keys if key.has_bounds]
    bounds = [
        F.struct(F.min(value).alias("low"), F.max(value).alias("high"), F.bool_or(value.isNull()).alias("null"))
        for value in values
    ]
    return F.struct(*bounds) if bounds else F.first(F.lit(None))


def rows_in_range(keys: Iterable[Key], found: Row | None) -> Column:
    """A condition of the target alone: the rows that a key of the changes can equal, by the answer to `key_range`."""
    with_bounds = [key for key in keys if key.has_bounds]
    possible = (_within(key, bounds) for key, bounds in zip(with_bounds, found or (), strict=True))
    return reduce(Column.__and__, possible, F.lit(True))


def _within(key: Key, bounds: Row) -> Column:
    low, high = bounds["low"], bounds["high"]
    if low is None:
        return key.target.isNull() if bounds["null"] else F.lit(True)  # no changes, so nothing is to be skipped
    within = key.target >= F.lit(low[:_LONGEST_TEXT] if isinstance(low, str) else low).cast(key.data_type)
    if not isinstance(high, str) or len(high) <= _LONGEST_TEXT:
        within &= key.target <= F.lit(high).cast(key.data_type)
    return within | key.target.isNull() if bounds["null"] else within
