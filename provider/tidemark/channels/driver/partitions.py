"""Rows by the partitions of their table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.channels.driver.table_spec import TableSpec
from tidemark.channels.model.columns import Column, Kind
from tidemark.channels.planning.values.times import EPOCH

__all__ = ["Part", "parts_of"]

_ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f") | frozenset(map(chr, range(1, 32)))
_LONGEST_NAME = 255  # bytes of a name on common file systems
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Part:
    """Rows of one partition, without its columns. `values`: partition column in files → its value in Delta's form.
    `directory`: of its files, with a slash at the end; empty for a table without partitions.
    """

    rows: pa.Table
    values: Mapping[str, str | None]
    directory: str


def parts_of(rows: pa.Table, spec: TableSpec) -> Iterator[Part]:
    """The rows of each partition in their order, partitions in the order of their first rows."""
    columns = [spec.by_name[name.upper()] for name in spec.partition_columns]
    if not columns:
        yield Part(rows, {}, "")
        return
    names = [column.physical for column in columns]
    numbers = _partition_numbers(rows, names)
    for number in pc.unique(numbers).to_pylist():
        part = rows.filter(pc.equal(numbers, number))
        texts = {column.physical: _text(part.column(column.physical)[0], column) for column in columns}
        yield Part(part.drop_columns(names), texts, _directory(columns, texts))


def _partition_numbers(rows: pa.Table, names: list[str]) -> pa.ChunkedArray:
    """A number for each row: equal for equal values, NULLs among them."""
    numbers = pa.array([0] * rows.num_rows, pa.int64())
    for name in names:
        codes = pc.fill_null(rows.column(name).combine_chunks().dictionary_encode().indices, -1).cast(pa.int64())
        distinct = pc.add(pc.multiply(numbers, len(codes) + 1), pc.add(codes, 1))
        numbers = distinct.dictionary_encode().indices.cast(pa.int64())
    return numbers


def _text(value: pa.Scalar, column: Column) -> str | None:
    """The value in Delta's form ("Partition Value Serialization"). An empty text is NULL, as in Spark."""
    if not value.is_valid:
        return None
    match column.type.kind:
        case Kind.TIMESTAMP:
            return f"{_moment(value.value).isoformat(timespec='microseconds')}Z"
        case Kind.TIMESTAMP_NTZ:
            return _moment(value.value).isoformat(" ", "microseconds")
        case Kind.BOOLEAN:
            return str(value.as_py()).lower()
        case Kind.BINARY:
            return str(value.as_py(), "utf-8", "replace") or None
        case Kind.DECIMAL:
            return f"{value.as_py():f}"
        case _:
            found: Any = value.as_py()
            return (found.isoformat() if isinstance(found, date) else str(found)) or None


def _moment(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def _directory(columns: list[Column], texts: Mapping[str, str | None]) -> str:
    """Directories as Spark names them. There are none if names in files are not the table's, or if a disk takes no
    directory of that name. The log alone says which partition a file has.
    """
    if any(column.field_id is not None for column in columns):
        return ""
    pairs = ((column.name, texts[column.physical]) for column in columns)
    parts = [f"{_escaped(name)}={_NO_VALUE if text is None else _escaped(text)}" for name, text in pairs]
    if any("\0" in part or len(part.encode()) > _LONGEST_NAME for part in parts):
        return ""
    return "".join(f"{part}/" for part in parts)


def _escaped(text: str) -> str:
    return "".join(f"%{ord(one):02X}" if one in _ESCAPED else one for one in text)
