"""PostgreSQL's types as unified types. A type without a counterpart is STRING: no type is ever refused."""

from __future__ import annotations

import re

from tidemark.errors import InvalidArgument
from tidemark.replication.model.replication import TypeKind, UnifiedType

__all__ = ["DECIMAL_DIGITS", "STRING", "decimal_of", "numeric_choice", "unified_type"]

DECIMAL_DIGITS = 38  # of Delta's widest decimal
STRING = UnifiedType(TypeKind.STRING)
_NUMERIC = 1700
_KINDS = {  # by OID: these are the same in every PostgreSQL
    16: TypeKind.BOOLEAN,
    17: TypeKind.BYTES,
    20: TypeKind.LONG,
    21: TypeKind.SMALLINT,
    23: TypeKind.INTEGER,
    26: TypeKind.LONG,  # oid: 32 bits without a sign
    114: TypeKind.JSON,
    700: TypeKind.FLOAT,
    701: TypeKind.DOUBLE,
    1082: TypeKind.DATE,
    1114: TypeKind.DATETIME,
    1184: TypeKind.TIMESTAMP,
    3802: TypeKind.JSON,
}
_ELEMENTS = {  # array type → type of its items
    199: 114, 1000: 16, 1001: 17, 1002: 18, 1003: 19, 1005: 21, 1007: 23, 1009: 25, 1014: 1042, 1015: 1043, 1016: 20,
    1021: 700, 1022: 701, 1028: 26, 1041: 869, 1115: 1114, 1182: 1082, 1183: 1083, 1185: 1184, 1187: 1186, 1231: 1700,
    1270: 1266, 2951: 2950, 3807: 3802,
}  # fmt: skip
_CHOICE = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)", re.IGNORECASE)


def unified_type(
    oid: int, typmod: int, *, element: UnifiedType | None = None, numeric_as: str | None = None
) -> UnifiedType:
    """The unified type of a column or of an item of an array.

    A domain is to be asked for by the type (and modifier) it is over: `types_of` does. `element`: of an array of a type
    that is not built in. `numeric_as`: what a numeric without precision becomes, as in ReplicationOptions. Raises
    InvalidArgument.
    """
    if element is not None:
        return UnifiedType(TypeKind.ARRAY, item=element)
    if oid in _ELEMENTS:
        return UnifiedType(TypeKind.ARRAY, item=unified_type(_ELEMENTS[oid], typmod, numeric_as=numeric_as))
    if oid == _NUMERIC:
        return numeric_choice(numeric_as) if typmod < 0 else decimal_of(*_numeric_digits(typmod))
    return UnifiedType(_KINDS[oid]) if oid in _KINDS else STRING


def decimal_of(precision: int, scale: int) -> UnifiedType:
    """A numeric(precision, scale) as the DECIMAL that holds all its values; STRING where none is wide enough.

    A scale below zero rounds to tens or hundreds, one above the precision puts zeros behind the point (from 15 on).
    """
    if scale < 0:
        precision, scale = precision - scale, 0
    precision = max(precision, scale)
    return UnifiedType(TypeKind.DECIMAL, precision, scale) if precision <= DECIMAL_DIGITS else STRING


def numeric_choice(numeric_as: str | None) -> UnifiedType:
    """The type for a numeric without precision: STRING, or the decimal that the user chose. Raises InvalidArgument."""
    if numeric_as is None or numeric_as.strip().lower() == "string":
        return STRING
    found = _CHOICE.fullmatch(numeric_as.strip())
    precision, scale = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= precision <= DECIMAL_DIGITS or scale > precision:
        raise InvalidArgument(
            argument="numeric_as", value=numeric_as, problem='is neither "string" nor a decimal like "decimal(38,9)"'
        )
    return UnifiedType(TypeKind.DECIMAL, precision, scale)


def _numeric_digits(typmod: int) -> tuple[int, int]:
    """Precision and scale. The scale has 11 bits with a sign; before 15 it was 1000 at most, so fits as well."""
    packed = typmod - 4
    return packed >> 16 & 0xFFFF, (packed & 0x7FF ^ 1024) - 1024
