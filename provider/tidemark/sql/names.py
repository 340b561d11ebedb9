"""Names of SQL statements as Spark and the lake know them (R12)."""

from __future__ import annotations

from tidemark.sql.identifiers import spelled
from tidemark.sql.statements import path_name
from tidemark.sql.text import SqlName

__all__ = ["external_table_name", "sql_name"]


def sql_name(name: SqlName) -> str:
    """The name with the parts that need it in backticks; a path as ``delta.`/path` ``."""
    if len(name.parts) == 2 and name.parts[0].lower() == "delta":
        return path_name(name.parts[1])
    return ".".join(map(spelled, name.parts))


def external_table_name(name: SqlName) -> str:
    """The name of an external table, or its quoted path."""
    return name.parts[-1] if name.parts[0] == "delta" else name.text
