"""Values of a source out of their canonical texts, as a target's columns have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StringType, StructField, StructType

from tidemark.errors import ValueDoesNotFit
from tidemark.jobs.raised_facts import facts_in, raised_with
from tidemark.replication.model.replication import Column as SourceColumn
from tidemark.replication.model.replication import InvalidValues, TypeKind, UnifiedType
from tidemark.replication.planning.types import decimal_of, delta_type

__all__ = ["fits", "named_invalid_value", "spark_type", "texts_of", "typed", "value_of", "written_value"]

SIGN = "TidemarkValueDoesNotFit"
LONGEST_SHOWN = 200  # characters of a value in an error
_AS_TEXT = StringType()
_WHOLE = {"mode": "FAILFAST", "maxStringLen": str(2**31 - 1)}  # half a document is an error, not a row of nulls
_NUMBERS = {
    TypeKind.SMALLINT: "smallint",
    TypeKind.INTEGER: "int",
    TypeKind.LONG: "bigint",
    TypeKind.FLOAT: "float",
    TypeKind.DOUBLE: "double",
}
_MOMENTS = {TypeKind.DATETIME: "timestamp_ntz", TypeKind.TIMESTAMP: "timestamp"}


def spark_type(kind: UnifiedType) -> DataType:
    """The type that a target's column has."""
    return DataType.fromDDL(delta_type(kind))


def texts_of(payload: Column, names: Sequence[str]) -> Column:
    """A struct of the canonical texts of the columns `names`, NULL for null and for what the payload leaves out.

    A payload that is no JSON object fails the query.
    """
    return F.from_json(payload, StructType([StructField(name, _AS_TEXT) for name in names]), _WHOLE)


def typed(text: Column, kind: UnifiedType) -> Column:
    """The value of a canonical text; NULL for null, and for what the type in Delta does not hold. It never fails."""
    if kind.kind is TypeKind.ARRAY:
        item = UnifiedType(TypeKind.STRING) if kind.item is None else kind.item
        return F.when(~_of_arrays(text), F.transform(_items(text), lambda one: typed(one, item)))
    if kind.kind is TypeKind.BOOLEAN:
        return F.when(text == "true", True).when(text == "false", False)
    if kind.kind is TypeKind.BYTES:
        return F.try_to_binary(text, F.lit("hex"))
    if kind.kind in _NUMBERS:
        return text.try_cast(_NUMBERS[kind.kind])
    if kind.kind is TypeKind.DATE:
        return F.when(F.length(text) == len("2024-02-29"), text.try_cast("date"))  # longer: after 9999, or BC
    if kind.kind in _MOMENTS:
        return F.when(F.substring(text, 5, 1) == "-", text.try_cast(_MOMENTS[kind.kind]))  # later: after 9999
    digits = decimal_of(kind)
    if digits is not None:
        point = F.instr(text, ".")
        longer = text.rlike(rf"^-?\d+\.\d{{0,{digits[1]}}}0*$")
        exact = (point == 0) | (F.length(text) - point <= digits[1]) | longer  # a cast would round
        return F.when(exact, text.try_cast("decimal({},{})".format(*digits)))
    return text


def fits(text: Column, value: Column, kind: UnifiedType) -> Column:
    """Whether `value`, that `typed` made of `text`, holds all of it."""
    if kind.kind is TypeKind.ARRAY:
        item = UnifiedType(TypeKind.STRING) if kind.item is None else kind.item
        each = F.forall(_items(text), lambda one: fits(one, typed(one, item), item))
        return text.isNull() | (~_of_arrays(text) & F.coalesce(each, F.lit(False)))
    return text.isNull() | value.isNotNull()


def value_of(text: Column, kind: UnifiedType) -> Column:
    """`typed`, with nothing of an array's invalid items left: NULL for the whole array."""
    value = typed(text, kind)
    return F.when(fits(text, value, kind), value) if kind.kind is TypeKind.ARRAY else value


def written_value(
    text: Column, column: SourceColumn, *, invalid_values: InvalidValues, object_name: str, position: Column
) -> Column:
    """The value that goes into the target. A value that does not fit is NULL, or fails the query with what
    `named_invalid_value` names. In a key it always fails, as NULL would make one row of several.
    """
    value = value_of(text, column.type)
    never = column.type.kind in (TypeKind.STRING, TypeKind.JSON) or delta_type(column.type) == "STRING"
    if never or (invalid_values is InvalidValues.NULL and not column.key):
        return value
    facts = F.struct(
        F.lit(object_name).alias("object"),
        F.substring(text, 1, LONGEST_SHOWN).alias("value"),
        F.lit(column.name).alias("column"),
        F.lit(delta_type(column.type)).alias("type"),
        position.alias("position"),
    )
    refused = raised_with(SIGN, facts, f": a value of {object_name} does not fit")
    return F.coalesce(value, F.when(text.isNotNull(), refused.cast(spark_type(column.type))))  # made once


def named_invalid_value(text: str, **more: Any) -> ValueDoesNotFit | None:
    """The error of a value that did not fit, if it is in what Spark says; `more` goes into its facts."""
    facts = facts_in(SIGN, text)
    return None if facts is None else ValueDoesNotFit(**{**facts, **more})


def _of_arrays(text: Column) -> Column:
    """Whether an ARRAY's text has arrays for items, which a source gives the same type. As texts they would be items
    that nobody can tell from texts.
    """
    return text.startswith("[[")


def _items(text: Column) -> Column:
    """Of an ARRAY's text; NULL for what is no JSON array."""
    return F.from_json(text, ArrayType(_AS_TEXT), {"maxStringLen": str(2**31 - 1)})
