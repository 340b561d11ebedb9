"""Values of a column as a filter on another, which lets Delta skip files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
)

from tidemark.changes.planning.views.ranges import ranges

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["Values", "can_cut", "index_of"]

_MOST_RANGES = 32
_MOST_TEXTS = 200
_WHOLE_NUMBERS = (ByteType, ShortType, IntegerType, LongType)


@dataclass(frozen=True)
class Values:
    """Values of one type, with NULL apart."""

    kind: DataType
    values: frozenset[Any]
    null: bool

    def join(self, other: Values) -> Values | None:
        """The values of both; None if their types are compared differently."""
        if not _alike(self.kind, other.kind):
            return None
        return Values(self.kind, self.values | other.values, self.null or other.null)

    def hold(self, schema: StructType, name: str, *, null: bool = False) -> Column | None:
        """A filter that the column `name` of `schema` has one of the values, or one close to it. With it, files can be
        skipped. With `null`, NULL is a value like any other; without, nothing equals it. None if the types are compared
        differently.
        """
        field = schema.fields[index_of(schema, name)]
        if not _alike(self.kind, field.dataType):
            return None
        column = F.col("`" + field.name.replace("`", "``") + "`")
        condition = _is_one_of(column, sorted(self.values))
        return condition | column.isNull() if null and self.null else condition


def can_cut(schema: StructType, name: str) -> bool:
    """Whether files can be skipped by a column's type: whole numbers, dates and plain text."""
    kind = schema.fields[index_of(schema, name)].dataType
    if isinstance(kind, StringType):
        return bool(kind.collation == "UTF8_BINARY")
    return isinstance(kind, (*_WHOLE_NUMBERS, DateType))


def _is_one_of(column: Column, values: list[Any]) -> Column:
    if not values:
        return F.lit(False)
    if isinstance(values[0], str):
        if len(values) <= _MOST_TEXTS:
            return column.isin(values)
        return column.between(values[0], values[-1])
    spans = [column.between(first, last) for first, last in ranges(values, _MOST_RANGES)]
    return reduce(lambda one, other: one | other, spans)


def _alike(left: DataType, right: DataType) -> bool:
    return left == right or (isinstance(left, _WHOLE_NUMBERS) and isinstance(right, _WHOLE_NUMBERS))


def index_of(schema: StructType, name: str) -> int:
    """The index of a column, ignoring the case of its name."""
    return [field.name.lower() for field in schema.fields].index(name)
