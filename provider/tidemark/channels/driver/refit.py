"""Buffered rows of an earlier schema as the table takes them now."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.channels.driver.arrow_types import buffer_type
from tidemark.channels.driver.table_spec import TableSpec
from tidemark.channels.model.columns import Column

__all__ = ["SchemaConflict", "refit"]


class SchemaConflict(ValueError):
    """The reason why buffered rows do not fit the table any more."""


def refit(rows: pa.Table, old: TableSpec, new: TableSpec) -> pa.Table:
    """The rows under the new schema: added columns have no value, widened types have their old ones.

    Raises SchemaConflict if a value would be lost, or a required column is missing.
    """
    if old.schema_json == new.schema_json:
        return rows
    known = {_identity(column): column for column in old.columns}
    for key, column in known.items():
        is_gone = all(_identity(other) != key for other in new.columns)
        if is_gone and rows.column(column.physical).null_count < rows.num_rows:
            raise SchemaConflict(f"column {column.name} was dropped, and buffered rows have values of it")
    arrays = [_column(rows, known.get(_identity(column)), column) for column in new.columns]
    return pa.Table.from_arrays(arrays, schema=new.buffer_schema)


def _identity(column: Column) -> int | str:
    return column.name.upper() if column.field_id is None else column.field_id


def _column(rows: pa.Table, old: Column | None, new: Column) -> pa.ChunkedArray | pa.Array:
    wanted = buffer_type(new.type)
    values = pa.nulls(rows.num_rows, wanted) if old is None else rows.column(old.physical)
    if not new.nullable and values.null_count:
        raise SchemaConflict(f"column {new.name} is NOT NULL now, and buffered rows have no value for it")
    if values.type == wanted:
        return values
    try:
        return pc.cast(values, wanted)
    except pa.ArrowException:
        raise SchemaConflict(f"column {new.name} is of type {wanted} now, and was of type {values.type}") from None
