"""Values of files as values of a table's columns. A value that does not fit becomes NULL, and its row an error."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    MapType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from tidemark.delivery.driver.char_columns import CHAR_VARCHAR
from tidemark.delivery.driver.fit import nullable
from tidemark.pipes.planning.readers import ValueFormats

__all__ = ["Fitted", "fitted"]

_LONGEST_SHOWN = 200  # characters of a value in a message
_NESTED = (ArrayType, MapType, StructType)
_TIMES = (DateType, TimestampType, TimestampNTZType)


@dataclass(frozen=True)
class Fitted:
    """`value`: of the column's type; `fails`: whether there is a value that does not fit; `message`: what to say."""

    value: Column
    fails: Column | None
    message: Column


def fitted(source: Column, kind: DataType, field: StructField, formats: ValueFormats, *, truncate: bool) -> Fitted:
    """The source's value, of type `kind`, as a value of the column. `truncate`: a text that is too long is cut."""
    wanted = nullable(field.dataType)
    if isinstance(kind, VariantType) and not isinstance(wanted, VariantType):
        return _of_variant(source, wanted, field, formats, truncate)
    message = _message(source.cast("string"), wanted)
    if kind.simpleString() == wanted.simpleString():
        return Fitted(_cut(source, field, truncate), None, message)
    value = _of_text(source, wanted, formats) if isinstance(kind, StringType) else _of_typed(source, kind, wanted)
    return Fitted(_cut(value, field, truncate), source.isNotNull() & value.isNull(), message)


def _of_text(source: Column, wanted: DataType, formats: ValueFormats) -> Column:
    pattern = formats.date if isinstance(wanted, DateType) else formats.timestamp
    if isinstance(wanted, _TIMES) and pattern is not None:
        return F.try_to_timestamp(source, F.lit(pattern)).cast(wanted)
    if isinstance(wanted, BinaryType):
        return F.try_to_binary(source, F.lit({"UTF8": "utf-8"}.get(formats.binary, formats.binary.lower())))
    if isinstance(wanted, VariantType):
        return F.try_parse_json(source)
    if isinstance(wanted, _NESTED):
        return F.from_json(source, wanted.simpleString(), {"mode": "PERMISSIVE"})
    return source.try_cast(wanted)


def _of_typed(source: Column, kind: DataType, wanted: DataType) -> Column:
    if isinstance(wanted, VariantType):
        return F.to_variant_object(source) if isinstance(kind, _NESTED) else source.cast(wanted)
    if isinstance(wanted, StringType) and isinstance(kind, _NESTED):
        return F.to_json(source)
    return source.try_cast(wanted)


def _of_variant(source: Column, wanted: DataType, field: StructField, formats: ValueFormats, truncate: bool) -> Fitted:
    text = F.try_variant_get(source, "$", "string")
    is_there = source.isNotNull() & ~F.is_variant_null(source)
    pattern = formats.date if isinstance(wanted, DateType) else formats.timestamp
    if isinstance(wanted, BinaryType) or (isinstance(wanted, _TIMES) and pattern is not None):
        value = _of_text(text, wanted, formats)
    else:
        value = F.try_variant_get(source, "$", wanted.simpleString())
    return Fitted(_cut(value, field, truncate), is_there & value.isNull(), _message(text, wanted))


def _cut(value: Column, field: StructField, truncate: bool) -> Column:
    declared = field.metadata.get(CHAR_VARCHAR)
    if not truncate or declared is None:
        return value
    length = getattr(DataType.fromDDL(str(declared)), "length", None)
    return value if length is None else F.substring(value, 1, length)


def _message(text: Column, wanted: DataType) -> Column:
    shown = F.substring(text, 1, _LONGEST_SHOWN)
    if isinstance(wanted, NumericType):
        what = "Numeric value"
    elif isinstance(wanted, BooleanType):
        what = "Boolean value"
    elif isinstance(wanted, DateType):
        what = "Date"
    elif isinstance(wanted, _TIMES):
        what = "Timestamp"
    else:
        what = f"Value for {wanted.simpleString()}"
    return F.concat(F.lit(f"{what} '"), shown, F.lit("' is not recognized"))
