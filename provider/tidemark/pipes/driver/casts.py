"""Values of files as values of a table's columns. A value that does not fit becomes NULL, and its row an error.

A whole number takes no number with a fraction. A nested value fits if all of its parts do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FractionalType,
    IntegralType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from tidemark.delivery.driver.fit import nullable
from tidemark.jobs.schemas import CHAR_VARCHAR
from tidemark.pipes.planning.readers import ValueFormats
from tidemark.pipes.planning.transform_paths import path_step
from tidemark.pipes.planning.transform_types import Refused

__all__ = ["Fitted", "fitted"]

_LONGEST_SHOWN = 200  # characters of a value in a message
_UNFIT = "__unfit"  # of a text, if a part of it does not fit
_NESTED = (ArrayType, MapType, StructType)
_TIMES = (DateType, TimestampType, TimestampNTZType)
_FROM_ANY, _TO_ANY = (NullType, StringType), (StringType, VariantType)
_CASTS: tuple[tuple[Any, Any], ...] = (  # Spark's, of values without parts
    ((NumericType, BooleanType), (NumericType, BooleanType)),
    (NumericType, TimestampType),
    (TimestampType, NumericType),
    (_TIMES, _TIMES),
)


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
    fails = source.isNotNull() & value.isNull()
    if isinstance(kind, _NESTED):
        fails = fails | _part_fails(source, kind, wanted)
    return Fitted(_cut(value, field, truncate), fails, message)


def _of_text(source: Column, wanted: DataType, formats: ValueFormats) -> Column:
    pattern = formats.date if isinstance(wanted, DateType) else formats.timestamp
    if isinstance(wanted, _TIMES) and pattern is not None:
        return F.try_to_timestamp(source, F.lit(pattern)).cast(wanted)
    if isinstance(wanted, BinaryType):
        return F.try_to_binary(source, F.lit({"UTF8": "utf-8"}.get(formats.binary, formats.binary.lower())))
    if isinstance(wanted, VariantType):
        return F.try_parse_json(source)
    if isinstance(wanted, _NESTED):
        return _of_json(source, wanted)
    return _number_of_text(source, wanted) if _is_whole(wanted) else source.try_cast(wanted)


def _number_of_text(source: Column, wanted: DataType) -> Column:
    value = source.try_cast(wanted)
    return F.when(value.cast("double") == source.try_cast("double"), value)


def _of_json(source: Column, wanted: DataType) -> Column:
    """The text of a nested value. Spark shows a part that does not fit only in a column beside it.

    It rounds decimals, so those without places are read as text.
    """
    kind = _decimals_as_text(wanted)
    columns = StructType([StructField("value", kind), StructField(_UNFIT, StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _UNFIT}
    found = F.from_json(F.concat(F.lit('{"value":'), source, F.lit("}")), columns, options)
    value = F.when(found.getField(_UNFIT).isNull(), found.getField("value"))
    return value if kind == wanted else F.when(~_part_fails(value, kind, wanted), _of_typed(value, kind, wanted))


def _decimals_as_text(wanted: DataType) -> DataType:
    """The type with texts for its decimals without places."""
    if isinstance(wanted, StructType):
        return StructType([StructField(part.name, _decimals_as_text(part.dataType)) for part in wanted.fields])
    if isinstance(wanted, ArrayType):
        return ArrayType(_decimals_as_text(wanted.elementType))
    if isinstance(wanted, MapType):
        return MapType(wanted.keyType, _decimals_as_text(wanted.valueType))
    return StringType() if isinstance(wanted, DecimalType) and wanted.scale == 0 else wanted


def _of_typed(source: Column, kind: DataType, wanted: DataType) -> Column:
    if isinstance(wanted, VariantType):
        return F.to_variant_object(source) if isinstance(kind, _NESTED) else source.cast(wanted)
    if isinstance(wanted, StringType) and isinstance(kind, _NESTED):
        return F.to_json(source)
    if not _is_castable(kind, wanted):
        return F.lit(None).cast(wanted)
    if isinstance(kind, StringType) and _is_whole(wanted):
        return _number_of_text(source, wanted)
    value = _by_names(source, kind, wanted).try_cast(wanted)
    if isinstance(kind, FractionalType) and _is_whole(wanted):
        return F.when(value.try_cast(kind) == source, value)
    return value


def _is_whole(wanted: DataType) -> bool:
    return isinstance(wanted, IntegralType) or (isinstance(wanted, DecimalType) and wanted.scale == 0)


def _part_fails(source: Column, kind: DataType, wanted: DataType) -> Column:
    """Whether a part of a value becomes NULL; the value itself if it has none."""
    if kind.simpleString() == wanted.simpleString():
        return F.lit(False)
    if isinstance(kind, StructType) and isinstance(wanted, StructType):
        known = _fields(kind)
        pairs = [(known[f.name.casefold()], f.dataType) for f in wanted.fields if f.name.casefold() in known]
        parts = [_part_fails(source.getField(mine.name), mine.dataType, other) for mine, other in pairs]
        return reduce(or_, parts, F.lit(False))
    if isinstance(kind, ArrayType) and isinstance(wanted, ArrayType):
        return _some_fails(source, kind.elementType, wanted.elementType)
    if isinstance(kind, MapType) and isinstance(wanted, MapType):
        of_keys = _some_fails(F.map_keys(source), kind.keyType, wanted.keyType)
        return of_keys | _some_fails(F.map_values(source), kind.valueType, wanted.valueType)
    return source.isNotNull() & _of_typed(source, kind, wanted).isNull()


def _some_fails(elements: Column, kind: DataType, wanted: DataType) -> Column:
    return F.coalesce(F.exists(elements, lambda one: _part_fails(one, kind, wanted)), F.lit(False))


def _is_castable(kind: DataType, wanted: DataType) -> bool:
    """Whether Spark has a cast, once fields of structs are found by name. Without one every value is an error."""
    if isinstance(kind, StructType) and isinstance(wanted, StructType):
        known = _fields(kind)
        common = [(known[f.name.casefold()], f) for f in wanted.fields if f.name.casefold() in known]
        return bool(common) and all(_is_castable(mine.dataType, other.dataType) for mine, other in common)
    if isinstance(kind, ArrayType) and isinstance(wanted, ArrayType):
        return _is_castable(kind.elementType, wanted.elementType)
    if isinstance(kind, MapType) and isinstance(wanted, MapType):
        return _is_castable(kind.keyType, wanted.keyType) and _is_castable(kind.valueType, wanted.valueType)
    if isinstance(kind, _NESTED) or isinstance(wanted, _NESTED):
        return False
    if isinstance(kind, _FROM_ANY) or isinstance(wanted, _TO_ANY) or kind == wanted:
        return True
    return any(isinstance(kind, one) and isinstance(wanted, other) for one, other in _CASTS)


def _by_names(source: Column, kind: DataType, wanted: DataType) -> Column:
    """The value with the fields of its structs in the order of the wanted ones: a cast goes by their positions. Fields
    are found in any case, those that are missing are NULL, and others are left out.
    """
    if isinstance(kind, StructType) and isinstance(wanted, StructType):
        known = _fields(kind)

        def part(field: StructField) -> Column:
            mine = known.get(field.name.casefold())
            if mine is None:
                return F.lit(None).cast(field.dataType).alias(field.name)
            return _by_names(source.getField(mine.name), mine.dataType, field.dataType).alias(field.name)

        return F.when(source.isNotNull(), F.struct(*map(part, wanted.fields)))
    if isinstance(kind, ArrayType) and isinstance(wanted, ArrayType):
        given, element = kind.elementType, wanted.elementType
        nested = isinstance(given, _NESTED)
        return F.transform(source, lambda one: _by_names(one, given, element)) if nested else source
    if isinstance(kind, MapType) and isinstance(wanted, MapType) and isinstance(kind.valueType, _NESTED):
        held, value = kind.valueType, wanted.valueType
        return F.transform_values(source, lambda _, one: _by_names(one, held, value))
    return source


def _fields(kind: StructType) -> dict[str, StructField]:
    return {field.name.casefold(): field for field in reversed(kind.fields)}


def _of_variant(source: Column, wanted: DataType, field: StructField, formats: ValueFormats, truncate: bool) -> Fitted:
    text = F.try_variant_get(source, "$", "string")
    pattern = formats.date if isinstance(wanted, DateType) else formats.timestamp
    if isinstance(wanted, BinaryType) or (isinstance(wanted, _TIMES) and pattern is not None):
        value = _of_text(text, wanted, formats)
        fails = _is_there(source) & value.isNull()
    else:
        value, fails = _from_variant(source, wanted), _variant_fails(source, wanted)
    return Fitted(_cut(value, field, truncate), fails, _message(text, wanted))


def _is_there(source: Column) -> Column:
    return source.isNotNull() & ~F.is_variant_null(source)


def _from_variant(source: Column, wanted: DataType) -> Column:
    # the short text of a type does not quote names, so Spark takes one with a blank only from JSON
    value = F.try_variant_get(source, "$", wanted.json() if isinstance(wanted, _NESTED) else wanted.simpleString())
    if not _is_whole(wanted):
        return value
    return F.when(value.cast("double") == F.try_variant_get(source, "$", "double"), value)


def _variant_fails(source: Column, wanted: DataType) -> Column:
    """Whether the value, or a part of it, does not fit."""
    fails = _is_there(source) & _from_variant(source, wanted).isNull()
    if isinstance(wanted, StructType):
        return reduce(or_, (_member_fails(source, member) for member in wanted.fields), fails)
    if isinstance(wanted, ArrayType):
        element, elements = wanted.elementType, F.try_variant_get(source, "$", "array<variant>")
    elif isinstance(wanted, MapType):
        element = wanted.valueType
        elements = F.map_values(F.try_variant_get(source, "$", "map<string,variant>"))
    else:
        return fails
    return fails | F.coalesce(F.exists(elements, lambda one: _variant_fails(one, element)), F.lit(False))


def _member_fails(source: Column, field: StructField) -> Column:
    """Whether the value of the field does not fit. That of a name that no path in Spark can have becomes NULL then."""
    try:
        path = f"${path_step(field.name)}"
    except Refused:
        return F.lit(False)
    return _variant_fails(F.try_variant_get(source, path, "variant"), field.dataType)


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
