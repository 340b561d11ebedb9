"""Least and greatest values of a file, from its statistics in the log."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from tidemark.model.file_statistics import exact_statistics, may_be_rounded
from tidemark.model.foreign_json import exact_number
from tidemark.model.table_log import AddFile
from tidemark.search.model.paths import SearchColumn, ValueKind
from tidemark.search.model.terms import IsIn, Like, Term, Within

__all__ = ["Bounds", "bounds_of", "can_hold", "statistics_of"]

Bounds = tuple[Any, Any]
_WILD = ("%", "_")
_SCALE = re.compile(r", *(\d+)\)")


def statistics_of(file: AddFile) -> Mapping[str, Any]:
    """The statistics of a file; empty if the log has none. Numbers are exact."""
    return exact_statistics(file) or {}


def bounds_of(file: AddFile, stats: Mapping[str, Any], column: SearchColumn) -> Bounds | None:
    """The least and the greatest value that a row of the file may have; None if the log does not say it. A truncated
    text is a bound, too: the log has a least that is shorter, and a greatest that is greater.
    """
    if column.is_array or column.kind in (ValueKind.TIMESTAMP, ValueKind.BINARY):
        return None
    if len(column.physical) == 1 and column.physical[0] in file.partition_values:
        said = file.partition_values[column.physical[0]]
        least = greatest = said or None  # an empty text is NULL
    else:
        least, greatest = (_inside(stats.get(name), column) for name in ("minValues", "maxValues"))
        if column.kind is ValueKind.DECIMAL and any(_may_be_rounded(one, column) for one in (least, greatest)):
            return None
    try:
        return None if least is None or greatest is None else (_value(column, least), _value(column, greatest))
    except (ValueError, TypeError, ArithmeticError):
        return None


def can_hold(term: Term, bounds: Bounds) -> bool:
    """Whether a file with these bounds of the term's column may have a row for which it is true."""
    least, greatest = bounds
    if isinstance(term, IsIn):
        return any(least <= value <= greatest for value in term.values)
    if isinstance(term, Within):
        below = term.most is not None and (term.most < least or (term.most == least and not term.with_most))
        above = term.least is not None and (term.least > greatest or (term.least == greatest and not term.with_least))
        return not below and not above
    if isinstance(term, Like):
        prefix = _beginning(term.pattern)
        return not prefix or (str(least)[: len(prefix)] <= prefix <= str(greatest))
    return True


def _beginning(pattern: str) -> str:
    ends = [pattern.find(sign) for sign in _WILD if sign in pattern]
    return pattern[: min(ends)] if ends else pattern


def _inside(values: Any, column: SearchColumn) -> Any:
    for name in column.physical:
        values = values.get(name) if isinstance(values, dict) else None
    return values


def _may_be_rounded(said: Any, column: SearchColumn) -> bool:
    scale = _SCALE.search(column.type)
    return isinstance(said, Decimal) and scale is not None and may_be_rounded(said, int(scale[1]))


def _value(column: SearchColumn, said: Any) -> Any:
    if column.kind is ValueKind.TEXT:
        return str(said)
    if column.kind is ValueKind.DATE:
        return date.fromisoformat(str(said))
    number = exact_number(str(said))
    if not number.is_finite():
        raise ValueError(said)
    return number if column.kind is ValueKind.DECIMAL else int(number)
