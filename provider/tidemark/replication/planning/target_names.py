"""Names that targets have: of the table of an object, and of the columns that are not the object's."""

from __future__ import annotations

from collections.abc import Iterable

from tidemark.replication.model.replication import ObjectName, TableSchema, WriteMode

__all__ = ["EVENT_COLUMNS", "METADATA_COLUMN", "columns_in_the_way", "table_of"]

METADATA_COLUMN = "datastream_metadata"
EVENT_COLUMNS = ("change_type", "change_sequence_number", "sort_keys", "is_deleted")
"""Those that a row of an append-only target has besides."""


def table_of(name: ObjectName) -> str:
    """The object's table in the target. `s.a/b` and `s.a_b` have the same."""
    return name.folded.replace("/", "_")


def columns_in_the_way(schema: TableSchema, mode: WriteMode) -> tuple[str, ...]:
    """The object's columns that its target has for itself; Delta does not tell them apart by case. A table without a
    key is append-only in every replication.
    """
    append_only = mode is WriteMode.APPEND_ONLY or not schema.keys
    own: Iterable[str] = (METADATA_COLUMN, *EVENT_COLUMNS) if append_only else (METADATA_COLUMN,)
    return tuple(column.name for column in schema.columns if column.name.lower() in own)
