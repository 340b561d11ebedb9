"""Values as change records show them: JSON text, made from columns; and the types that records report of them.

INT64, NUMERIC, DATE, TIMESTAMP, BYTES (base64) and JSON are strings. Booleans and floating-point numbers are JSON's
own, except NaN and the infinities. Arrays, structs and maps are nested. The text of a whole number or decimal does not
depend on the width of its type. So a key keeps its text when its column is widened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

__all__ = ["NO_VALUES", "json_object", "json_of_chosen", "type_code"]

NO_VALUES = "{}"
_OPTIONS = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "dateFormat": "yyyy-MM-dd",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_NESTED = (ArrayType, MapType, StructType)
_WHOLE = (ByteType, ShortType, IntegerType, LongType)
_CODES: Mapping[type[DataType], str] = {
    **dict.fromkeys(_WHOLE, "INT64"),
    FloatType: "FLOAT32",
    DoubleType: "FLOAT64",
    DecimalType: "NUMERIC",
    BooleanType: "BOOL",
    StringType: "STRING",
    BinaryType: "BYTES",
    DateType: "DATE",
    TimestampType: "TIMESTAMP",
    TimestampNTZType: "TIMESTAMP_NTZ",
    VariantType: "JSON",
}


def json_object(row: Column, fields: Sequence[StructField]) -> Column:
    """The fields of the struct `row` as JSON text, names in alphabetical order, NULLs explicit; NULL for no row."""
    if not fields:
        return F.lit(NO_VALUES)
    return F.when(row.isNotNull(), F.to_json(F.struct(*(_member(row, field) for field in _in_order(fields))), _OPTIONS))


def json_of_chosen(row: Column, chosen: Sequence[tuple[StructField, Column]]) -> Column:
    """As `json_object`, with the fields whose condition holds in this row."""
    if not chosen:
        return F.lit(NO_VALUES)
    chosen = sorted(chosen, key=lambda one: one[0].name)
    every = _joined_objects(row, chosen)
    if any(isinstance(field.dataType, _NESTED) for field, _ in chosen):
        return every
    # One object is cheaper. It leaves NULLs out: those that are not chosen, and so none may be chosen.
    shown = [F.when(is_chosen, _member(row, field)).alias(field.name) for field, is_chosen in chosen]
    has_null = reduce(or_, (is_chosen & row.getField(field.name).isNull() for field, is_chosen in chosen))
    return F.when(has_null, every).otherwise(F.to_json(F.struct(*shown), {**_OPTIONS, "ignoreNullFields": "true"}))


def _joined_objects(row: Column, chosen: Sequence[tuple[StructField, Column]]) -> Column:
    """An object of each chosen field, joined in this order."""
    objects = [F.when(is_chosen, F.to_json(F.struct(_member(row, field)), _OPTIONS)) for field, is_chosen in chosen]
    members = F.transform(F.array(*objects), lambda text: _within(text, 1))
    return F.concat(F.lit("{"), F.array_join(members, ","), F.lit("}"))  # array_join leaves NULLs out


def type_code(kind: DataType) -> dict[str, Any]:
    """The JSON form of a type in column_types."""
    if isinstance(kind, ArrayType):
        return {"code": "ARRAY", "array_element_type": type_code(kind.elementType)}
    if isinstance(kind, StructType):
        fields = [{"name": field.name, "type": type_code(field.dataType)} for field in kind.fields]
        return {"code": "STRUCT", "struct_type": {"fields": fields}}
    if isinstance(kind, MapType):
        return {"code": "MAP", "map_key_type": type_code(kind.keyType), "map_value_type": type_code(kind.valueType)}
    return {"code": next((code for known, code in _CODES.items() if isinstance(kind, known)), "STRING")}


def _in_order(fields: Sequence[StructField]) -> list[StructField]:
    return sorted(fields, key=lambda field: field.name)


def _member(row: Column, field: StructField) -> Column:
    return _shown(row.getField(field.name), field.dataType).alias(field.name)


def _shown(value: Column, kind: DataType) -> Column:
    """A value that `to_json` writes as records show it."""
    if isinstance(kind, ArrayType):
        return F.transform(value, lambda item: _shown(item, kind.elementType)) if _changes(kind) else value
    if isinstance(kind, StructType):
        fields = [_shown(value.getField(field.name), field.dataType).alias(field.name) for field in kind.fields]
        return F.when(value.isNotNull(), F.struct(*fields)) if fields else value
    if isinstance(kind, MapType):
        return _shown_map(value, kind)
    if isinstance(kind, _WHOLE):
        return value.cast("string")
    if isinstance(kind, DecimalType):
        return _plain(value, kind.scale)
    if isinstance(kind, VariantType):
        return F.to_json(value, {"timeZone": "UTC"})
    return value


def _shown_map(value: Column, kind: MapType) -> Column:
    """Entries in the order of their keys as text: a map has none of its own."""
    entry = F.transform(
        F.map_entries(value),
        lambda item: F.struct(
            _as_name(item["key"], kind.keyType).alias("key"), _shown(item["value"], kind.valueType).alias("value")
        ),
    )
    by_key = F.array_sort(
        entry, lambda one, other: F.when(one["key"] < other["key"], -1).when(one["key"] > other["key"], 1).otherwise(0)
    )
    return F.map_from_entries(by_key)


def _as_name(key: Column, kind: DataType) -> Column:
    """A map's key as the name of a member: its text, without quotes if it has some as a value."""
    if isinstance(kind, StringType):
        return F.collate(key, "UTF8_BINARY")
    text = F.to_json(F.array(_shown(key, kind)), _OPTIONS)
    return F.transform(F.array(text), lambda found: _within(found, F.when(found.startswith('["'), 2).otherwise(1)))[0]


def _within(text: Column, marks: Column | int) -> Column:
    """The text less this many characters at both ends."""
    count = F.lit(marks) if isinstance(marks, int) else marks
    return F.substring(text, count + 1, F.length(text) - 2 * count)


def _changes(kind: DataType) -> bool:
    """Whether `_shown` gives another value for this type."""
    if isinstance(kind, ArrayType):
        return _changes(kind.elementType)
    return isinstance(kind, (*_WHOLE, DecimalType, VariantType, StructType, MapType))


def _plain(value: Column, scale: int) -> Column:
    """All digits, no exponent, no zeros at the end of the fraction."""
    if scale == 0:
        return value.cast("string")
    return F.call_function("format_number", value, F.lit("0." + "#" * scale))
