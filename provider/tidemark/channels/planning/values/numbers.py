"""Numbers and truth values, by the rules of the source system (seed 001, supported data types)."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

from tidemark.channels.model.columns import ColumnType, Kind
from tidemark.channels.model.rows import RowErrorKind
from tidemark.channels.planning.values.problem import ValueProblem, shown

__all__ = ["LARGEST_FLOAT", "NUMBERS"]

_RANGES = {Kind.BYTE: 2**7, Kind.SHORT: 2**15, Kind.INTEGER: 2**31, Kind.LONG: 2**63}
LARGEST_FLOAT = (2 - 2**-23) * 2.0**127
_TRUE = frozenset({"true", "t", "yes", "y", "on", "1"})
_FALSE = frozenset({"false", "f", "no", "n", "off", "0"})
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,5})?", re.ASCII)
_NO_NUMBER = {"nan": math.nan, "inf": math.inf, "+inf": math.inf, "-inf": -math.inf, "infinity": math.inf}
_NO_NUMBER |= {"+infinity": math.inf, "-infinity": -math.inf}
_EXACT = Context(prec=400, rounding=ROUND_HALF_UP, Emax=999_999, Emin=-999_999)
_MOST_DIGITS = 300


def _boolean(value: Any, _: ColumnType) -> bool:
    """Any number but 0 is true; texts are true, t, yes, y, on, 1 and their contraries, in any case."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
        raise ValueProblem(RowErrorKind.INVALID_VALUE, f"{shown(value)} is not a truth value")
    return _decimal_of(value, "a truth value") != 0


def _whole(value: Any, kind: ColumnType) -> int:
    """Rounded half up, then checked against the range."""
    number = int(_rounded(_decimal_of(value, "a number"), 0))
    limit = _RANGES[kind.kind]
    if not -limit <= number < limit:
        raise ValueProblem(RowErrorKind.OUT_OF_RANGE, f"{shown(value)} is outside {-limit} to {limit - 1}")
    return number


def _decimal(value: Any, kind: ColumnType) -> Decimal:
    """Rounded half up to the scale, then checked against the precision: 99.95 does not fit DECIMAL(3,1)."""
    number = _rounded(_decimal_of(value, "a number"), kind.scale)
    if abs(number) >= Decimal(10) ** (kind.precision - kind.scale):
        problem = f"{shown(value)} does not fit DECIMAL({kind.precision},{kind.scale})"
        raise ValueProblem(RowErrorKind.OUT_OF_RANGE, problem)
    return number


def _float(value: Any, kind: ColumnType) -> float:
    """Numbers, and texts of numbers with NaN, inf and -inf among them."""
    if isinstance(value, str) and value.strip().lower() in _NO_NUMBER:
        return _NO_NUMBER[value.strip().lower()]
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Rational):
        number = float(value)
    else:
        exact = _decimal_of(value, "a number")
        number = float(exact)
    is_out = math.isinf(number) and not _is_infinite(value)
    if is_out or (kind.kind is Kind.FLOAT and math.isfinite(number) and abs(number) > LARGEST_FLOAT):
        raise ValueProblem(RowErrorKind.OUT_OF_RANGE, f"{shown(value)} is outside the range of {kind.kind.upper()}")
    return number


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float | numbers.Real) and not isinstance(value, int) and math.isinf(value)


def _decimal_of(value: Any, needed: str) -> Decimal:
    """The exact number. A float is the decimal that it is shown as."""
    if isinstance(value, bool) or not isinstance(value, str | Decimal | numbers.Real):
        raise ValueProblem(RowErrorKind.WRONG_TYPE, f"{shown(value)} is not {needed}")
    try:
        if isinstance(value, str):
            return _decimal_of_text(value, needed)
        number = Decimal(int(value)) if isinstance(value, numbers.Integral) else Decimal(str(value))
    except (InvalidOperation, ValueError):
        raise ValueProblem(RowErrorKind.INVALID_VALUE, f"{shown(value)} is not {needed}") from None
    if not number.is_finite():
        raise ValueProblem(RowErrorKind.INVALID_VALUE, f"{shown(value)} is not {needed}")
    return number


def _decimal_of_text(value: str, needed: str) -> Decimal:
    text = value.strip()
    if _NUMBER.fullmatch(text) is None:
        raise ValueProblem(RowErrorKind.INVALID_VALUE, f"{shown(value)} is not {needed}")
    return Decimal(text)


def _rounded(number: Decimal, scale: int) -> Decimal:
    """Half up to `scale` digits behind the point. A number far out of any range stays as it is."""
    if number.adjusted() > _MOST_DIGITS:
        raise ValueProblem(RowErrorKind.OUT_OF_RANGE, f"a number of {number.adjusted() + 1} digits is out of range")
    return number.quantize(Decimal(1).scaleb(-scale), context=_EXACT)


NUMBERS: dict[Kind, Callable[[Any, ColumnType], Any]] = {
    Kind.BOOLEAN: _boolean,
    Kind.BYTE: _whole,
    Kind.SHORT: _whole,
    Kind.INTEGER: _whole,
    Kind.LONG: _whole,
    Kind.DECIMAL: _decimal,
    Kind.FLOAT: _float,
    Kind.DOUBLE: _float,
}
