"""JSON as text, with each digit of decimals, which the standard library's writer does not take."""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Iterable, Mapping
from datetime import date, time
from decimal import Decimal
from typing import Any

from tidemark.channels.model.rows import RowErrorKind
from tidemark.channels.planning.values.plain import number_text, plain_value
from tidemark.channels.planning.values.problem import ValueProblem, shown

__all__ = ["json_text", "object_of"]

_MOST_DIGITS = 4_300  # of a number that Python reads from JSON


def object_of(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The pairs as an object; keys without NULs at their end. Raises ValueProblem for a key twice."""
    pairs = list(pairs)
    found = {key.rstrip("\0"): value for key, value in pairs}
    if len(found) != len(pairs):
        raise ValueProblem(RowErrorKind.INVALID_VALUE, "an object has a key twice")
    return found


def json_text(value: Any) -> str:
    """The JSON of a value; times in ISO 8601. Raises ValueProblem for a value without a JSON form, RecursionError."""
    value = plain_value(value)
    if value is None or isinstance(value, str | bool):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Decimal) and value.is_finite():
        return _readable(str(value))
    if isinstance(value, numbers.Rational) or (isinstance(value, numbers.Real) and math.isfinite(value)):
        return _readable(number_text(value))
    if isinstance(value, date | time):
        return json.dumps(value.isoformat())
    if isinstance(value, Mapping):
        pairs = object_of([(_key(key), item) for key, item in value.items()]).items()
        return "{" + ",".join(f"{json.dumps(key, ensure_ascii=False)}:{json_text(item)}" for key, item in pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(json_text, value)) + "]"
    raise ValueProblem(RowErrorKind.WRONG_TYPE, f"{shown(value)} has no JSON form")


def _readable(number: str) -> str:
    if len(number) > _MOST_DIGITS:
        raise ValueProblem(RowErrorKind.OUT_OF_RANGE, f"a number has more than {_MOST_DIGITS:,} digits")
    return number


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise ValueProblem(RowErrorKind.WRONG_TYPE, f"{shown(key)} is not a text, and keys of objects are")
    return key
