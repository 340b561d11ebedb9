"""A target's constraints as conditions that are true or false and never fail. Delta's own checks end the write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    MapType,
    StructField,
    StructType,
    VarcharType,
)

from tidemark.delivery.planning.constraints import check_texts, text_at
from tidemark.jobs.schemas import CHAR_VARCHAR
from tidemark.model.table_log import Metadata
from tidemark.sql.identifiers import quoted

__all__ = ["DEFAULT", "GENERATED", "IDENTITY", "Check", "checks_of", "filled_by_delta"]

GENERATED = "delta.generationExpression"
IDENTITY = "delta.identity.start"
DEFAULT = "CURRENT_DEFAULT"


@dataclass(frozen=True)
class Check:
    """A constraint. `holds`: a condition over the target's columns; NULL counts as false, as in Delta.

    `name`: in the quarantine. `names`: the columns that it may read, in lower case; None if unknown.
    """

    name: str
    holds: Column
    names: frozenset[str] | None


def filled_by_delta(field: StructField) -> bool:
    """Whether Delta computes the column itself, so that no writer gives it."""
    return GENERATED in field.metadata or IDENTITY in field.metadata


def checks_of(metadata: Metadata, schema: StructType, given: frozenset[str], at: datetime) -> tuple[Check, ...]:
    """The constraints on a row with the columns `given` (lower case): in the order of its columns, then CHECK
    constraints by name. The present is `at`.
    """
    checks = [check for field in schema.fields for check in _of_column(field, given, at)]
    written = check_texts(metadata.configuration, at)
    return (*checks, *(Check(f"CHECK {text.name}", F.expr(text.sql), text.names) for text in written))


def _of_column(field: StructField, given: frozenset[str], at: datetime) -> Iterator[Check]:
    column, names = F.col(quoted(field.name)), frozenset({field.name.lower()})
    if IDENTITY in field.metadata:
        return
    for path, inner in _required(field, column, field.name):
        yield Check(f"NOT NULL {path}", inner.isNotNull(), names)
    if field.name.lower() not in given:
        return
    if CHAR_VARCHAR in field.metadata:
        declared = str(field.metadata[CHAR_VARCHAR])
        holds = _short_enough(column, DataType.fromDDL(declared))
        if holds is not None:
            yield Check(f"{declared.upper()} {field.name}", holds, names)
    if GENERATED in field.metadata:
        text = text_at(str(field.metadata[GENERATED]), at)
        if text is not None:
            made = F.expr(text[0]).cast(field.dataType)
            yield Check(f"GENERATED {field.name}", column.eqNullSafe(made), text[1] and text[1] | names)


def _required(field: StructField, column: Column, path: str) -> Iterator[tuple[str, Column]]:
    """Conditions for NOT NULL. Delta checks it also inside a struct that is NULL, and not inside arrays and maps."""
    if not field.nullable:
        yield path, column
    if isinstance(field.dataType, StructType):
        for inner in field.dataType.fields:
            yield from _required(inner, column.getField(inner.name), f"{path}.{inner.name}")


def _short_enough(column: Column, declared: DataType) -> Column | None:
    """Whether no text in the value is longer than declared; None if no length is declared."""
    if isinstance(declared, (CharType, VarcharType)):
        return column.isNull() | (F.char_length(column) <= declared.length)
    if isinstance(declared, StructType):
        parts = [_short_enough(column.getField(field.name), field.dataType) for field in declared.fields]
        return _all([part for part in parts if part is not None])
    if isinstance(declared, ArrayType):
        return _each(column, declared.elementType)
    if isinstance(declared, MapType):
        sides = [_each(F.map_keys(column), declared.keyType), _each(F.map_values(column), declared.valueType)]
        return _all([side for side in sides if side is not None])
    return None


def _each(column: Column, declared: DataType) -> Column | None:
    if _short_enough(F.lit(None), declared) is None:
        return None

    def holds(item: Column) -> Column:
        found = _short_enough(item, declared)
        return F.lit(True) if found is None else found

    return column.isNull() | F.forall(column, holds)


def _all(parts: list[Column]) -> Column | None:
    if not parts:
        return None
    whole = parts[0]
    for part in parts[1:]:
        whole = whole & part
    return whole
