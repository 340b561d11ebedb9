"""The comparison of two images of a row by content (R54)."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType, VariantType

__all__ = ["same_content"]

_BY_BYTES = "UTF8_BINARY"


def same_content(old: Column, new: Column, kind: DataType) -> Column:
    """Whether two values of type `kind` are equal. NULL equals NULL, NaN equals NaN, and 0.0 equals -0.0. Strings are
    compared by bytes, maps in any order of their entries.
    """
    return _comparable(old, kind).eqNullSafe(_comparable(new, kind))


def _comparable(value: Column, kind: DataType) -> Column:
    """The same value in a form that `<=>` compares as `same_content` promises."""
    if not _needs_a_form(kind):
        return value
    if isinstance(kind, StringType):
        return F.collate(value, _BY_BYTES)
    if isinstance(kind, VariantType):
        return _typed_text(value)
    if isinstance(kind, ArrayType):
        return F.transform(value, lambda item: _comparable(item, kind.elementType))
    if isinstance(kind, MapType):
        entry = StructType().add("key", kind.keyType).add("value", kind.valueType)
        return F.array_sort(F.transform(F.map_entries(value), lambda item: _comparable(item, entry)))
    assert isinstance(kind, StructType)
    fields = [_comparable(value.getField(field.name), field.dataType).alias(field.name) for field in kind.fields]
    return F.when(value.isNotNull(), F.struct(*fields))


def _typed_text(variant: Column) -> Column:
    """A variant's JSON and the types of its values. JSON alone distinguishes 1.0 from "1.0", but not a date from its
    text.

    An array of mixed types has one type for all items. Two arrays that differ only in a type behind the same text count
    as equal.
    """
    return F.when(variant.isNotNull(), F.struct(F.to_json(variant), F.schema_of_variant(variant)))


def _needs_a_form(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return _needs_a_form(kind.elementType)
    if isinstance(kind, StructType):
        return any(_needs_a_form(field.dataType) for field in kind.fields)
    is_collated = isinstance(kind, StringType) and kind.collation != _BY_BYTES
    return is_collated or isinstance(kind, MapType | VariantType)
