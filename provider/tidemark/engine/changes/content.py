"""When two images of a row have the same content (R54)."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

__all__ = ["same_content"]


def same_content(old: Column, new: Column, kind: StructType) -> Column:
    """Whether two structs of type `kind` are equal: NULL equals NULL, NaN equals NaN, strings by bytes, and maps
    whatever the order of their entries.
    """
    return _comparable(old, kind).eqNullSafe(_comparable(new, kind))


def _comparable(value: Column, kind: DataType) -> Column:
    """The same value with each map as its entries in the order of their keys: maps cannot be compared."""
    if not _has_map(kind):
        return value
    if isinstance(kind, ArrayType):
        return F.transform(value, lambda item: _comparable(item, kind.elementType))
    if isinstance(kind, MapType):
        entry = StructType().add("key", kind.keyType).add("value", kind.valueType)
        return F.array_sort(F.transform(F.map_entries(value), lambda item: _comparable(item, entry)))
    assert isinstance(kind, StructType)
    fields = [_comparable(value.getField(field.name), field.dataType).alias(field.name) for field in kind.fields]
    return F.when(value.isNotNull(), F.struct(*fields))


def _has_map(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return _has_map(kind.elementType)
    if isinstance(kind, StructType):
        return any(_has_map(field.dataType) for field in kind.fields)
    return isinstance(kind, MapType)
