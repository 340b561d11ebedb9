"""Names of columns and tables in the form that Spark's parser accepts."""

from __future__ import annotations

__all__ = ["quoted", "spelled"]


def quoted(name: str) -> str:
    """The name in backticks, dots and dollars included."""
    return "`" + name.replace("`", "``") + "`"


def spelled(part: str) -> str:
    """A part of a table's name, in backticks only if it needs them."""
    return part if part.isidentifier() else quoted(part)
