"""Types of MySQL and MariaDB as unified types. A type without a counterpart is STRING: no type is ever refused.

A type has the same words whether it comes from the catalog or the log. `normal_type` leaves out what the log does not
have.
"""

from __future__ import annotations

import re

from tidemark.replication.model.replication import TypeKind, UnifiedType

__all__ = ["DECIMAL_DIGITS", "STRING", "base_of", "normal_type", "unified_type"]

DECIMAL_DIGITS = 38  # of Delta's widest decimal
STRING = UnifiedType(TypeKind.STRING)
_WIDEST = UnifiedType(TypeKind.DECIMAL, 20, 0)
_KINDS = {
    "tinyint": TypeKind.SMALLINT,
    "smallint": TypeKind.SMALLINT,
    "mediumint": TypeKind.INTEGER,
    "int": TypeKind.INTEGER,
    "bigint": TypeKind.LONG,
    "tinyint unsigned": TypeKind.SMALLINT,
    "smallint unsigned": TypeKind.INTEGER,
    "mediumint unsigned": TypeKind.INTEGER,
    "int unsigned": TypeKind.LONG,
    "float": TypeKind.FLOAT,
    "double": TypeKind.DOUBLE,
    "year": TypeKind.INTEGER,
    "date": TypeKind.DATE,
    "datetime": TypeKind.DATETIME,
    "timestamp": TypeKind.TIMESTAMP,
    "json": TypeKind.JSON,
    "binary": TypeKind.BYTES,
    "varbinary": TypeKind.BYTES,
    "tinyblob": TypeKind.BYTES,
    "blob": TypeKind.BYTES,
    "mediumblob": TypeKind.BYTES,
    "longblob": TypeKind.BYTES,
    "vector": TypeKind.BYTES,
    "geometry": TypeKind.BYTES,
}
_SPATIAL = frozenset(
    {
        "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
        "geometrycollection", "geomcollection",
    }
)  # fmt: skip
_LENGTH_MATTERS = frozenset({"char", "varchar", "binary", "varbinary", "decimal", "bit"})
_MOMENTS = frozenset({"datetime", "timestamp", "time"})  # digits of a second, none where nothing is said
_WITH_SIGN = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double"})
_TYPE = re.compile(r"([a-z0-9_]+)\s*(\((?:[^'()]|'(?:[^']|'')*')*\))?\s*(.*)", re.S)


def normal_type(column_type: str) -> str:
    """A type as `information_schema` writes it (`int(10) unsigned zerofill`), in the words of both databases."""
    found = _TYPE.fullmatch(column_type.strip())
    if found is None:
        return column_type
    base, length, more = found[1].lower(), found[2] or "", found[3].lower()
    if base in _SPATIAL:
        return "geometry"
    if base in ("enum", "set"):
        return f"{base}{length}"
    sign = " unsigned" if base in _WITH_SIGN and "unsigned" in more else ""
    if base in _MOMENTS:
        length = length or "(0)"
    elif base not in _LENGTH_MATTERS or length == "(0)":
        length = ""
    return f"{base}{length.replace(' ', '')}{sign}"


def base_of(native: str) -> str:
    """`varchar` of `varchar(20)`."""
    return native.partition("(")[0].partition(" ")[0]


def unified_type(native: str) -> UnifiedType:
    """The unified type of a normal type."""
    base, _, rest = native.partition("(")
    numbers = [int(one) for one in re.findall(r"\d+", rest)] if base in ("decimal", "bit") else []
    if base == "decimal":
        precision, scale = (*numbers, 0)[:2] if numbers else (10, 0)
        return UnifiedType(TypeKind.DECIMAL, precision, scale) if precision <= DECIMAL_DIGITS else STRING
    if base == "bit":
        return _WIDEST if numbers and numbers[0] == 64 else UnifiedType(TypeKind.LONG)
    if native == "bigint unsigned":
        return _WIDEST
    kind = _KINDS.get(native) or _KINDS.get(base) or _KINDS.get(base_of(native))
    return STRING if kind is None else UnifiedType(kind)
