"""Delta's statistics of a file, so that readers skip files (Delta protocol, "Per-file Statistics").

They are the number of rows, and the smallest value, the largest value and the number of NULLs of columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.channels.driver.table_spec import TableSpec
from tidemark.channels.model.columns import Column, Kind
from tidemark.channels.planning.values.json_text import json_text

__all__ = ["statistics_of"]

_PREFIX = 32  # characters of a text
_LAST_CHARACTER = "\U0010ffff"
_NO_BOUNDS = (Kind.BOOLEAN, Kind.BINARY, Kind.ARRAY, Kind.MAP, Kind.VARIANT)
_TIMES = (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ)


def statistics_of(rows: pa.Table, columns: Sequence[Column], spec: TableSpec) -> str:
    """The statistics as JSON, by names in files: of the table's indexed columns, fields of structs counted one by one.

    Texts are cut to 32 characters, and times to milliseconds, each to the safe side.
    """
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    leaves = (leaf for column in columns for leaf in _leaves(rows.column(column.physical), column, ()))
    for path, values, column in islice(leaves, spec.indexed_columns if spec.indexed_columns >= 0 else None):
        _put(nulls, path, values.null_count)
        if column.type.kind not in _NO_BOUNDS and values.null_count < len(values):
            low, high = _bounds(values, column)
            if low is not None and high is not None:
                _put(least, path, low)
                _put(most, path, high)
    said = {"numRecords": rows.num_rows, "minValues": least, "maxValues": most, "nullCount": nulls}
    return json_text(said)


def _leaves(
    values: pa.ChunkedArray, column: Column, above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Any, Column]]:
    path = (*above, column.physical)
    if column.type.kind is not Kind.STRUCT:
        yield path, values, column
        return
    for field in column.type.fields:
        inner = pa.chunked_array([pc.struct_field(chunk, field.physical) for chunk in values.chunks], type=None)
        yield from _leaves(inner, field, path)


def _put(target: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        target = target.setdefault(name, {})
    target[path[-1]] = value


def _bounds(values: pa.ChunkedArray, column: Column) -> tuple[Any, Any]:
    """The smallest and the largest value in Delta's form; None if they have none, such as NaN."""
    kind = column.type.kind
    if kind in (Kind.FLOAT, Kind.DOUBLE) and not pc.all(pc.is_finite(values)).as_py():
        return None, None
    found = pc.min_max(values)
    low, high = found["min"], found["max"]
    if kind in _TIMES:
        zone = "Z" if kind is Kind.TIMESTAMP else ""
        return _millis(low.value // 1000, zone), _millis(-(-high.value // 1000), zone)
    if kind in (Kind.FLOAT, Kind.DOUBLE):  # Spark compares -0.0 as smaller than 0.0 when it skips files
        return low.as_py() or -0.0, high.as_py() or 0.0
    if kind is Kind.STRING:
        return low.as_py()[:_PREFIX], _cut_up(high.as_py())
    return low.as_py(), high.as_py()


def _millis(millis: int, zone: str) -> str | None:
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=millis)
    except OverflowError:
        return None
    return f"{moment.replace(tzinfo=None).isoformat(timespec='milliseconds')}{zone}"


def _cut_up(text: str) -> str | None:
    """A text of the first characters that is not smaller."""
    if len(text) <= _PREFIX:
        return text
    return None if text[_PREFIX] == _LAST_CHARACTER else text[:_PREFIX] + _LAST_CHARACTER
