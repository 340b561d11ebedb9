"""Expressions in a clustering key, which Delta does not have: the column that takes their place."""

from __future__ import annotations

import re

from tidemark.errors import ClusteringKeyRefused

__all__ = ["refused_expression"]

_TYPES = {
    "DATE": ("to_date", "date", "last_day", "trunc"),
    "TIMESTAMP": ("date_trunc", "to_timestamp"),
    "INT": ("year", "month", "day", "hour", "length"),
    "BIGINT": ("abs", "floor", "ceil", "hash", "mod"),
    "STRING": ("substring", "substr", "left", "right", "upper", "lower", "trim", "concat"),
}
_CALL = re.compile(r"\s*(\w+)\s*\(", re.DOTALL)
_CAST = re.compile(r"(?:::\s*(\w+)|\bAS\s+(\w+)\s*\))\s*$", re.IGNORECASE)


def refused_expression(table: str, expression: str) -> ClusteringKeyRefused:
    """The refusal of an expression, with the statement that adds a column in its place."""
    words = [word for word in re.findall(r"\w+", expression) if not word.isdigit()]
    column = "_".join(word.lower() for word in words[:4]) or "cluster_key"
    problem = (
        "Delta clusters by columns, not by expressions. Add a column that has its values: "
        f"ALTER TABLE {table} ADD COLUMNS ({column} {_type_of(expression)}). Fill it: "
        f"UPDATE {table} SET {column} = {expression.strip()}, and in each write. Then name {column} in the key."
    )
    return ClusteringKeyRefused(table=table, key=expression.strip(), problem=problem)


def _type_of(expression: str) -> str:
    cast = _CAST.search(expression)
    if cast:
        return (cast[1] or cast[2]).upper()
    call = _CALL.match(expression)
    if call is None:
        return "BIGINT"
    return next((kind for kind, names in _TYPES.items() if call[1].lower() in names), "STRING")
