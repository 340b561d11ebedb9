"""Rows in newline-delimited JSON: whole columns at once, or row by row if one of them is out of the ordinary."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from tidemark.channels.driver.table_spec import TableSpec
from tidemark.channels.model.columns import Column, ColumnType, Kind
from tidemark.channels.planning.values.convert import column_for
from tidemark.errors import BodyUnreadable

__all__ = ["rows_of_json"]

_READ_AS = {
    Kind.BOOLEAN: pa.bool_(),
    **dict.fromkeys((Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG), pa.int64()),
    Kind.FLOAT: pa.float64(),
    Kind.DOUBLE: pa.float64(),
    **dict.fromkeys((Kind.STRING, Kind.BINARY, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ), pa.string()),
}


def rows_of_json(data: bytes, spec: TableSpec) -> pa.Table | list[dict[str, Any]]:
    """The rows, one JSON object in each line that is not empty. Numbers keep each digit.

    Raises BodyUnreadable, which names the line.
    """
    if not data.strip():
        return []
    return _whole_columns(data, spec) or _row_by_row(data)


def _whole_columns(data: bytes, spec: TableSpec) -> pa.Table | None:
    """The rows as an Arrow table; None unless each value has the JSON type of its column."""
    schema = _schema(data, spec)
    if schema is None:
        return None
    parsing = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    reading = pj.ReadOptions(use_threads=False, block_size=len(data) + 1)
    try:
        table = pj.read_json(pa.BufferReader(data), read_options=reading, parse_options=parsing)
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    return table if all(_is_sure(table.column(name), column_for(name, spec.by_name)) for name in schema.names) else None


def _schema(data: bytes, spec: TableSpec) -> pa.Schema | None:
    """All columns, by the names that the first row has for them."""
    try:
        first = json.loads(data.lstrip().partition(b"\n")[0])
    except (ValueError, RecursionError):
        return None
    if not isinstance(first, dict):
        return None
    found = {column.name: name for name in first if (column := column_for(name, spec.by_name)) is not None}
    types = ((found.get(column.name, column.name), _read_as(column.type)) for column in spec.columns)
    return pa.schema([pa.field(name, kind) for name, kind in types if kind is not None])


def _read_as(kind: ColumnType) -> pa.DataType | None:
    return pa.decimal128(38, kind.scale) if kind.kind is Kind.DECIMAL else _READ_AS.get(kind.kind)


def _is_sure(values: pa.ChunkedArray, column: Column | None) -> bool:
    """Whether the column says all: NULL may be a missing value, and infinity a number that is too large."""
    assert column is not None  # the schema has columns of the table alone
    if values.null_count and (not column.nullable or column.default is not None):
        return False
    return not pa.types.is_floating(values.type) or not pc.any(pc.is_inf(values)).as_py()


def _row_by_row(data: bytes) -> list[dict[str, Any]]:
    rows = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, parse_float=Decimal, object_pairs_hook=_object)
        except (ValueError, RecursionError) as error:
            problem = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise BodyUnreadable(problem=f"line {number} is not a JSON object: {problem}") from None
        if not isinstance(row, dict):
            raise BodyUnreadable(problem=f"line {number} is not a JSON object, but {type(row).__name__}")
        rows.append(row)
    return rows


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a key twice")
    return found
