"""Columns of a table as a channel writes them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Column", "ColumnType", "Kind"]


class Kind(StrEnum):
    """The types that a table with channels can have, by their names in Delta's schemas."""

    BOOLEAN = "boolean"
    BYTE = "byte"
    SHORT = "short"
    INTEGER = "integer"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL = "decimal"
    STRING = "string"
    BINARY = "binary"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"
    VARIANT = "variant"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"


@dataclass(frozen=True)
class ColumnType:
    """A type with its parts. `precision`, `scale`: of DECIMAL. `length`: of CHAR and VARCHAR in code points, else None.

    `key`, `element`: of MAP, and of ARRAY (`element` alone). `nullable_elements`: whether those may be NULL. `fields`:
    of STRUCT.
    """

    kind: Kind
    precision: int = 0
    scale: int = 0
    length: int | None = None
    key: ColumnType | None = None
    element: ColumnType | None = None
    nullable_elements: bool = True
    fields: tuple[Column, ...] = ()


@dataclass(frozen=True)
class Column:
    """A column, or a field of a STRUCT. `physical`: its name in files. `field_id`: its id in files, if it has one.

    `default`: the SQL text that a row without the column gets; None for NULL.
    """

    name: str
    type: ColumnType
    nullable: bool
    physical: str
    field_id: int | None = None
    default: str | None = None
