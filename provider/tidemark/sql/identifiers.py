"""Names of columns and tables, and texts, in the form that Spark's parser accepts."""

from __future__ import annotations

__all__ = ["quoted", "spelled", "string_literal"]


def quoted(name: str) -> str:
    """The name in backticks, dots and dollars included."""
    return "`" + name.replace("`", "``") + "`"


def spelled(part: str) -> str:
    """A part of a table's name, in backticks only if it needs them."""
    return part if part.isidentifier() else quoted(part)


def string_literal(text: str) -> str:
    """The text in single quotes, with Spark's escapes."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
