"""Values out of the JSON of a record, as the columns of a table have them."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

__all__ = ["texts_of", "value_of"]

TEXT = StringType()


def texts_of(json: Column, names: Sequence[str]) -> Column:
    """The values of a JSON object by their names, each as text: a string without its quotes, anything else as written.
    NULL for null, and for a missing value.
    """
    return F.from_json(json, StructType([StructField(name, TEXT) for name in names]))


def value_of(text: Column, kind: DataType) -> Column:
    """The value of type `kind` that `texts_of` gives as `text`. A text that is no such value fails the query."""
    if isinstance(kind, StringType):
        return text
    if isinstance(kind, BinaryType):
        return F.unbase64(text)
    if isinstance(kind, VariantType):
        return F.parse_json(text)
    if isinstance(kind, ArrayType):
        return F.transform(F.from_json(text, ArrayType(TEXT)), lambda item: value_of(item, kind.elementType))
    if isinstance(kind, MapType):
        return _map_of(text, kind)
    if isinstance(kind, StructType):
        texts = texts_of(text, [field.name for field in kind.fields])
        fields = [value_of(texts.getField(f.name), f.dataType).alias(f.name) for f in kind.fields]
        return F.when(text.isNotNull(), F.struct(*fields))
    return text.cast(kind)


def _map_of(text: Column, kind: MapType) -> Column:
    """From a JSON object; a map with keys that are no text is an object of their texts."""
    texts = F.from_json(text, "map<string,string>")
    entries = F.transform(
        F.map_entries(texts),
        lambda entry: F.struct(
            value_of(entry.getField("key"), kind.keyType).alias("key"),
            value_of(entry.getField("value"), kind.valueType).alias("value"),
        ),
    )
    return F.map_from_entries(entries)
