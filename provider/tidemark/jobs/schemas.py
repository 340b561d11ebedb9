"""The columns of a table, as its log has them, for Spark."""

from __future__ import annotations

from pyspark.sql.types import StructType

from tidemark.model.foreign_json import parsed

__all__ = ["struct_type"]


def struct_type(schema_json: str) -> StructType:
    """The type that a `schemaString` says. Raises ValueError."""
    return StructType.fromJson(parsed(schema_json))
