"""Rows in newline-delimited JSON: whole columns at once, or row by row if one of them is out of the ordinary."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from tidemark.channels.driver.table_spec import TableSpec
from tidemark.channels.model.columns import Column, ColumnType, Kind
from tidemark.channels.planning.values.convert import column_for
from tidemark.errors import BodyUnreadable
from tidemark.model.foreign_json import exact_number

__all__ = ["JsonLines", "rows_of_json", "rows_of_lines"]

_READ_AS = {
    Kind.BOOLEAN: pa.bool_(),
    **dict.fromkeys((Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG), pa.int64()),
    Kind.FLOAT: pa.float64(),
    Kind.DOUBLE: pa.float64(),
    **dict.fromkeys((Kind.STRING, Kind.BINARY, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ), pa.string()),
}


@dataclass(frozen=True)
class JsonLines:
    """Lines of a source. A line that is no JSON object is a row error. `place`: of a line by its index, for
    messages. Each line has one line break, at its end.
    """

    lines: Sequence[bytes]
    place: Callable[[int], str]


def rows_of_lines(lines: Sequence[bytes], spec: TableSpec) -> tuple[pa.Table | list[dict[str, Any]], dict[int, str]]:
    """The rows, and what is wrong with unreadable ones by index. Such a row is empty."""
    table = _whole_columns(b"".join(lines), spec)
    if table is not None and table.num_rows == len(lines):
        return table, {}
    rows: list[dict[str, Any]] = []
    problems = {}
    for index, line in enumerate(lines):
        try:
            rows.append(_row(line))
        except ValueError as error:
            rows.append({})
            problems[index] = f"it is not a JSON object{error}"
    return rows, problems


def rows_of_json(data: bytes, spec: TableSpec) -> pa.Table | list[dict[str, Any]]:
    """The rows, one JSON object in each line that is not empty. Numbers keep each digit.

    Raises BodyUnreadable, which names the line.
    """
    if not data.strip():
        return []
    return _whole_columns(data, spec) or _row_by_row(data)


def _whole_columns(data: bytes, spec: TableSpec) -> pa.Table | None:
    """The rows as an Arrow table; None unless each line is an object whose values have the JSON types of columns."""
    lines = _objects(data)
    schema = _schema(data, spec) if lines is not None else None
    if schema is None:
        return None
    parsing = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    reading = pj.ReadOptions(use_threads=False, block_size=len(data) + 1)
    try:
        table = pj.read_json(pa.BufferReader(data), read_options=reading, parse_options=parsing)
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    if table.num_rows != lines:  # a line may have two objects
        return None
    return table if all(_is_sure(table.column(name), column_for(name, spec.by_name)) for name in schema.names) else None


def _objects(data: bytes) -> int | None:
    """The number of lines that look like objects. None if a filled line does not, or if the data is not UTF-8.

    PyArrow reads null as a row of NULLs, and does not check texts.
    """
    try:
        data.decode()
    except UnicodeDecodeError:
        return None
    whole = data.strip()
    if whole[:1] == b"{" and whole[-1:] == b"}" and whole.count(b"}\n{") == (ends := whole.count(b"\n")):
        return ends + 1
    filled = [line for line in map(bytes.strip, data.split(b"\n")) if line]
    return len(filled) if all(line[:1] == b"{" and line[-1:] == b"}" for line in filled) else None


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
            rows.append(_row(line))
        except ValueError as error:
            raise BodyUnreadable(problem=f"line {number} is not a JSON object{error}") from None
    return rows


def _row(line: bytes) -> dict[str, Any]:
    """The object in a line. Raises ValueError with the end of a sentence on why it is none."""
    try:
        row = json.loads(line, parse_float=exact_number, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        problem = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ValueError(f": {problem}") from None
    if not isinstance(row, dict):
        raise ValueError(f", but {type(row).__name__}")
    return row


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a key twice")
    return found
