"""Values of pandas and NumPy as Python's own, and numbers as text."""

from __future__ import annotations

import numbers
from decimal import Decimal
from typing import Any

from tidemark.channels.model.rows import RowErrorKind
from tidemark.channels.planning.values.problem import ValueProblem, shown

__all__ = ["number_text", "plain_value"]

_MISSING = ("NaTType", "NAType")
_TRUTH = ("bool", "bool_")


def plain_value(value: Any) -> Any:
    """None for a missing value of pandas, a truth value of Python for one of NumPy. Other values stay as they are.

    NaT is a `datetime` by its type, and would be the first day of the year 1.
    """
    kind = type(value)
    if kind.__name__ in _MISSING and kind.__module__.startswith("pandas."):
        return None
    return bool(value) if kind.__name__ in _TRUTH and kind.__module__ == "numpy" else value


def number_text(value: numbers.Real) -> str:
    """The number in digits: whole ones with each of them, others as a DOUBLE. Raises ValueProblem beyond its range."""
    if isinstance(value, numbers.Integral):
        try:
            return str(int(value))
        except ValueError:  # of more than 4,300 digits
            return f"{Decimal(int(value)):f}"
    try:
        return repr(float(value))
    except OverflowError:
        raise ValueProblem(RowErrorKind.OUT_OF_RANGE, f"{shown(value)} is outside the range of DOUBLE") from None
