"""The change of a table's schema that a batch of rows asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from tidemark.channels.driver.batches import Batch, plain_rows
from tidemark.channels.driver.table_spec import TableSpec
from tidemark.channels.model.rows import RowErrorKind
from tidemark.channels.planning.evolution import MOST_NEW_COLUMNS, Evolution
from tidemark.channels.planning.values.convert import column_for
from tidemark.errors import InvalidArgument
from tidemark.model.foreign_json import plain_text

__all__ = ["delta_type", "evolution_for"]

_NOT_IN_NAMES = re.compile(r"[ ,;{}()\n\t=]")
_OF_THE_FEED = ("_change_type", "_commit_version", "_commit_timestamp")
_ABSENT = (RowErrorKind.MISSING_COLUMN, RowErrorKind.NULL_VALUE)
_SIMPLE: Mapping[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.uint8(): "short",
    pa.int32(): "integer",
    pa.uint16(): "integer",
    pa.int64(): "long",
    pa.uint32(): "long",
    pa.uint64(): "decimal(20,0)",
    pa.float16(): "float",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
    pa.date64(): "date",
}


def evolution_for(rows: Any, batch: Batch, spec: TableSpec) -> Evolution:
    """The change after which rows of the batch that have new columns, or lack NOT NULL ones, fit. False if none helps.

    Types of new columns are those of an Arrow table. Those of mappings follow from the values: BIGINT, DOUBLE, BOOLEAN,
    STRING, BINARY, DATE, TIMESTAMP, ARRAY, STRUCT. Values of mixed plain types are a STRING. A column without a value,
    with objects of mixed types, or with a name that Delta does not allow is not added. Raises InvalidArgument for more
    than 100 new columns.
    """
    kinds = {error.kind for error in batch.errors}
    absent = {name for error in batch.errors if error.kind in _ABSENT for name in error.column.split(",")}
    nullable = frozenset(column.name for column in spec.columns if column.name in absent and not column.nullable)
    new = dict(_new(plain_rows(rows, spec), spec)) if RowErrorKind.EXTRA_COLUMN in kinds else {}
    if len(new) > MOST_NEW_COLUMNS:
        problem = f"its rows have {len(new)} new columns, and at most {MOST_NEW_COLUMNS} are added at a time"
        raise InvalidArgument(argument="rows", value="(a batch)", problem=problem)
    return Evolution(new, nullable)


def delta_type(kind: pa.DataType) -> Any:
    """Delta's form of a type; None if no column is made of it."""
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})" if kind.precision <= 38 and kind.scale >= 0 else None
    if pa.types.is_timestamp(kind):
        return "timestamp"
    if pa.types.is_dictionary(kind):
        return delta_type(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        element = delta_type(kind.value_type)
        return element and {"type": "array", "elementType": element, "containsNull": True}
    if pa.types.is_struct(kind):
        return _struct(kind)
    return None


def _struct(kind: pa.StructType) -> Any:
    forms = [
        {"name": field.name, "type": form, "nullable": True, "metadata": {}}
        for field in kind
        if (form := delta_type(field.type)) is not None and not _NOT_IN_NAMES.search(field.name)
    ]
    names = {form["name"].upper() for form in forms} - {""}
    return {"type": "struct", "fields": forms} if len(names) == kind.num_fields > 0 else None


def _new(rows: pa.Table | Sequence[Mapping[str, Any]], spec: TableSpec) -> Iterator[tuple[str, Any]]:
    if isinstance(rows, pa.Table):
        found = {field.name: delta_type(field.type) for field in rows.schema}
    else:
        names = list(dict.fromkeys(str(name) for row in rows for name in row))
        unknown = [name for name in names if column_for(name, spec.by_name) is None]
        found = {name: _inferred([row.get(name) for row in rows]) for name in unknown}
    for name, form in found.items():
        plain = name[1:-1].replace('""', '"') if name[:1] == name[-1:] == '"' and len(name) > 1 else name
        if form is not None and plain.upper() not in spec.by_name and _is_good(plain):
            yield plain, form


def _is_good(name: str) -> bool:
    """Whether a column may have that name: Delta knows it, and its change data feed has no column of that name."""
    is_text = name == plain_text(name)
    return bool(name) and is_text and not _NOT_IN_NAMES.search(name) and name.lower() not in _OF_THE_FEED


def _inferred(values: Sequence[Any]) -> Any:
    try:
        kind = pa.array(values, from_pandas=True).type
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        plain = all(value is None or isinstance(value, str | int | float | bool) for value in values)
        return "string" if plain else None
    return delta_type(_with_doubles(kind))


def _with_doubles(kind: pa.DataType) -> pa.DataType:
    """Numbers of JSON are decimals of as many digits as each happens to have; later ones may have more."""
    if pa.types.is_decimal(kind):
        return pa.float64()
    if pa.types.is_list(kind):
        return pa.list_(_with_doubles(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _with_doubles(field.type)) for field in kind])
    return kind
