"""Names of columns as Spark's parser takes them."""

from __future__ import annotations

__all__ = ["quoted"]


def quoted(name: str) -> str:
    """The name in backticks, dots and dollars included."""
    return "`" + name.replace("`", "``") + "`"
