"""Between which keys a merge can match rows of its target. Delta skips the target's files and partitions outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ByteType, DataType, DateType, IntegerType, LongType, ShortType, StringType

from tidemark.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

__all__ = ["Key", "key_range", "rows_in_range", "rows_in_range_of"]

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


def key_range(keys: Sequence[Key]) -> Column:
    """An aggregate of the changes for `rows_in_range`: of each key column whether it has values and NULLs, and between
    which they lie.
    """
    bounds = [_bounds(key) for key in keys if key.has_bounds]
    return F.struct(*bounds) if bounds else F.first(F.lit(None))


def rows_in_range(keys: Sequence[Key], found: Row | None) -> Column:
    """A condition of the target alone: the rows that a key of the changes can equal, by the answer to `key_range`."""
    with_bounds = [key for key in keys if key.has_bounds]
    possible = (_within(key, bounds) for key, bounds in zip(with_bounds, found or (), strict=True))
    return reduce(Column.__and__, possible, F.lit(True))


def rows_in_range_of(changes: DataFrame, keys: Sequence[Key]) -> Column:
    """`rows_in_range` of kept changes, which are asked once more."""
    ((found,),) = changes.agg(key_range(keys)).collect()
    return rows_in_range(keys, found)


def _bounds(key: Key) -> Column:
    """Bounds that Python can hold: the start of a long text, and days since 1970, as years may have five digits."""
    value = F.col(quoted(key.name))
    low, high = F.min(value), F.max(value)
    if isinstance(key.data_type, DateType):
        low, high = F.unix_date(low), F.unix_date(high)
    elif isinstance(key.data_type, StringType):
        low = F.when(F.is_valid_utf8(low), F.substring(low, 1, _LONGEST_TEXT))
        high = F.when(F.is_valid_utf8(high) & (F.length(high) <= _LONGEST_TEXT), high)
    return F.struct(
        low.alias("low"),
        high.alias("high"),
        (F.count(value) > 0).alias("has_values"),
        F.coalesce(F.bool_or(value.isNull()), F.lit(False)).alias("has_nulls"),
    )


def _within(key: Key, bounds: Row) -> Column:
    within = [
        *([] if bounds["low"] is None else [key.target >= _literal(bounds["low"], key.data_type)]),
        *([] if bounds["high"] is None else [key.target <= _literal(bounds["high"], key.data_type)]),
    ]
    if not bounds["has_nulls"]:
        return reduce(Column.__and__, within, F.lit(True))
    if not bounds["has_values"]:
        return key.target.isNull()
    return reduce(Column.__and__, within) | key.target.isNull() if within else F.lit(True)


def _literal(value: int | str, data_type: DataType) -> Column:
    return F.date_from_unix_date(F.lit(value)) if isinstance(data_type, DateType) else F.lit(value).cast(data_type)
