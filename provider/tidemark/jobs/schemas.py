"""Spark's types of the columns in a table's log."""

from __future__ import annotations

from pyspark.sql.types import StructType

from tidemark.model.foreign_json import parsed

__all__ = ["CHAR_VARCHAR", "struct_type"]

CHAR_VARCHAR = "__CHAR_VARCHAR_TYPE_STRING"  # in the metadata of a column: its declared type


def struct_type(schema_json: str) -> StructType:
    """The type in a `schemaString`. Raises ValueError."""
    return StructType.fromJson(parsed(schema_json))
