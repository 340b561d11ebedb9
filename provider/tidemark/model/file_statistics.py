"""The statistics of a data file, as the log has them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from tidemark.model.foreign_json import exact_number, parsed
from tidemark.model.table_log import AddFile

__all__ = ["exact_statistics", "may_be_rounded"]

_OF_A_DOUBLE = 17  # digits at most of a floating-point number as text
_KEPT_BY_A_DOUBLE = 15  # digits that come through it unchanged


def exact_statistics(file: AddFile) -> Mapping[str, Any] | None:
    """The statistics with exact numbers; None if the log has none that can be read."""
    try:
        found = parsed(file.stats or "", number=exact_number)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def may_be_rounded(number: Decimal, scale: int) -> bool:
    """Whether the least or greatest value of a decimal column may be another one, nearby.

    Some writers take it through a floating-point number. More digits than that has, and few, are sure to be exact.
    """
    digits = len(number.as_tuple().digits)
    return digits <= _OF_A_DOUBLE and number.is_finite() and number.adjusted() + scale >= _KEPT_BY_A_DOUBLE
