"""Between which keys a merge can match rows of its target. Delta skips the target's files and partitions outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ByteType, DataType, DateType, IntegerType, LongType, ShortType, StringType

from tidemark.sql.identifiers import quoted

if TYPE_CHECKING:
    from tidemark.delivery.driver.fit import FittedColumn

__all__ = ["key_range", "target_rows"]

_IN_RANGES = (ByteType, ShortType, IntegerType, LongType, DateType)
_LONGEST_TEXT = 1_000
"""Characters of a bound, which is a part of the query's plan."""


def key_range(keys: Sequence[FittedColumn]) -> Column:
    """An aggregate of the changes, a struct: of each key column the least value, the greatest, and whether some are
    NULL.
    """
    return F.struct(
        *(
            F.struct(F.min(value).alias("low"), F.max(value).alias("high"), F.bool_or(value.isNull()).alias("null"))
            for value in (F.col(quoted(key.target)) for key in keys)
        )
    )


def target_rows(keys: Sequence[FittedColumn], found: Sequence[Mapping[str, Any]], target: str) -> Column:
    """A condition of the target alone, by what `key_range` found: which rows a key of the changes can equal. Types
    whose order differs between writers, or by collation, have no bounds.
    """
    bounded = [
        _within(F.col(f"{target}.{quoted(key.target)}"), key.data_type, bounds)
        for key, bounds in zip(keys, found, strict=True)
        if key.char_length is None and (isinstance(key.data_type, _IN_RANGES) or key.data_type == StringType())
    ]
    return reduce(Column.__and__, bounded, F.lit(True))


def _within(old: Column, data_type: DataType, bounds: Mapping[str, Any]) -> Column:
    low, high = bounds["low"], bounds["high"]
    if low is None:
        return old.isNull() if bounds["null"] else F.lit(True)  # no changes, so nothing is to be skipped
    within = old >= F.lit(low[:_LONGEST_TEXT] if isinstance(low, str) else low).cast(data_type)
    if not isinstance(high, str) or len(high) <= _LONGEST_TEXT:
        within &= old <= F.lit(high).cast(data_type)
    return within | old.isNull() if bounds["null"] else within
