"""Columns of a table in a query: their values, or the canonical texts that events have, and how wide they are."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.replication.model.replication import Column, Shown, TypeKind
from tidemark.replication.planning.hiding import MASK
from tidemark.replication.sources.mysql.dialects import Dialect
from tidemark.replication.sources.mysql.names import literal, quoted
from tidemark.replication.sources.mysql.texts import text_expression
from tidemark.replication.sources.mysql.types import base_of

__all__ = ["INNER", "OUTER", "as_read", "is_native", "reads_long", "row_bytes"]

INNER, OUTER = "@tidemark_inner", "@tidemark_outer"
"""Variables of a session with the pads of a hash, in hexadecimal digits (`pads_of`)."""

_WHOLE = frozenset({TypeKind.SMALLINT, TypeKind.INTEGER, TypeKind.LONG})
_FLOATING = frozenset({TypeKind.FLOAT, TypeKind.DOUBLE})
_LONG = frozenset({"text", "mediumtext", "longtext", "blob", "mediumblob", "longblob", "json", "geometry", "vector"})
_MEASURED = _LONG | {"char", "varchar", "binary", "varbinary", "tinytext", "tinyblob"}
_FIXED = 32  # bytes of a value that is not measured, and of what comes with each value
_CHARACTERS = 2  # times as many bytes a character has in Java, by and large


def is_native(column: Column) -> bool:
    """Whether `as_read` gives a number or bytes, and not a text."""
    if column.shown is not Shown.PLAIN:
        return False
    return column.type.kind in _WHOLE | _FLOATING or _is_bytes(column)


def as_read(column: Column, dialect: Dialect) -> str:
    """The column in a query. Masked or hashed values do not leave the source; a hash needs INNER and OUTER."""
    name, text = quoted(column.name), text_expression(column.name, column.native, dialect)
    if column.shown is Shown.MASKED:
        return f"CASE WHEN {name} IS NOT NULL THEN {literal(MASK)} END"
    if column.shown is Shown.HASHED:
        inner = f"UNHEX(SHA2(CONCAT(UNHEX({INNER}), CONVERT({text} USING utf8mb4)), 256))"
        return f"SHA2(CONCAT(UNHEX({OUTER}), {inner}), 256)"
    if column.type.kind in _WHOLE:
        return f"CAST({name} + 0 AS SIGNED)"  # a TINYINT(1) would come as a boolean, a BIT as bytes
    if column.type.kind in _FLOATING:
        return f"({name} + 0e0)"
    return name if _is_bytes(column) else text


def reads_long(columns: Sequence[Column]) -> bool:
    """Whether some values may be of any length."""
    return any(base_of(column.native) in _LONG for column in columns)


def row_bytes(columns: Sequence[Column]) -> str:
    """The bytes of a row in an answer, as an expression."""
    measured = [
        f"COALESCE(OCTET_LENGTH({quoted(column.name)}), 0) * {_CHARACTERS}"
        for column in columns
        if base_of(column.native) in _MEASURED
    ]
    return " + ".join([str(_FIXED * (len(columns) + 1)), *measured])


def _is_bytes(column: Column) -> bool:
    return column.type.kind is TypeKind.BYTES and base_of(column.native) != "geometry"
