"""Texts and bytes, by the rules of the source system (seed 001, supported data types)."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from tidemark.channels.model.columns import ColumnType, Kind
from tidemark.channels.model.rows import RowErrorKind
from tidemark.channels.planning.values.plain import number_text
from tidemark.channels.planning.values.problem import ValueProblem, shown

__all__ = ["MOST_BYTES", "TEXTS"]

MOST_BYTES = 16 << 20  # of a text


def _string(value: Any, kind: ColumnType) -> str:
    """Texts as they are; numbers and truth values as text. CHAR and VARCHAR count code points."""
    text = _text_of(value)
    if kind.length is not None and len(text) > kind.length:
        problem = f"{shown(value)} has {len(text)} characters, and the column takes {kind.length}"
        raise ValueProblem(RowErrorKind.TOO_LARGE, problem)
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise ValueProblem(RowErrorKind.INVALID_VALUE, f"{shown(value)} has an unpaired surrogate") from None
    if size > MOST_BYTES:
        raise ValueProblem(RowErrorKind.TOO_LARGE, f"the text has {size:,} bytes, and at most {MOST_BYTES:,} are taken")
    return text


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        if value.is_finite() and abs(value.adjusted()) > MOST_BYTES:
            problem = f"the text has more than {MOST_BYTES:,} bytes, and at most this many are taken"
            raise ValueProblem(RowErrorKind.TOO_LARGE, problem)
        return f"{value:f}"
    if isinstance(value, numbers.Real):
        return number_text(value)
    raise ValueProblem(RowErrorKind.WRONG_TYPE, f"{shown(value)} is not a text")


def _binary(value: Any, _: ColumnType) -> bytes:
    """Bytes as they are; texts in hexadecimal digits."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if not isinstance(value, str):
        raise ValueProblem(RowErrorKind.WRONG_TYPE, f"{shown(value)} is neither bytes nor hexadecimal digits")
    digits = value.strip()
    try:
        if (digits.isascii() and digits.isalnum()) or not digits:
            return bytes.fromhex(digits)
    except ValueError:
        pass
    raise ValueProblem(RowErrorKind.INVALID_VALUE, f"{shown(value)} is not an even number of hexadecimal digits")


TEXTS: dict[Kind, Callable[[Any, ColumnType], Any]] = {Kind.STRING: _string, Kind.BINARY: _binary}
