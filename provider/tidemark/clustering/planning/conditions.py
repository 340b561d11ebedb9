"""Conditions of RECLUSTER: bounds of columns of the key, joined by AND."""

from __future__ import annotations

import re

from tidemark.model.file_ranges import Bound
from tidemark.sql.text import Cursor

__all__ = ["bounds_in", "read_bounds"]

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d.*)")
_WITH_ZONE = re.compile(r"(?:Z|[+-]\d\d:?\d\d)$")
_SIGNS = ("<=", ">=", "<", ">", "=")

Value = str | int | float


def bounds_in(text: str) -> tuple[Bound, ...]:
    """The bounds in a condition such as `k >= 5 AND k < 9`. All bounds count as inclusive.

    Raises SqlCompilationError for any other condition.
    """
    cursor = Cursor(text)
    found = read_bounds(cursor)
    cursor.end()
    return found


def read_bounds(cursor: Cursor) -> tuple[Bound, ...]:
    """The same, up to the end of the condition."""
    found: dict[str, Bound] = {}
    while True:
        at = cursor.span
        bound = _comparison(cursor)
        kept = found.get(bound.column.casefold(), Bound(bound.column))
        twice = (kept.least, bound.least), (kept.greatest, bound.greatest)
        if any(one is not None and other is not None for one, other in twice):
            raise cursor.fails(f"give one least and one greatest value of {bound.column}", at)
        least = bound.least if kept.least is None else kept.least
        greatest = bound.greatest if kept.greatest is None else kept.greatest
        found[bound.column.casefold()] = Bound(bound.column, least, greatest)
        if not cursor.takes("AND"):
            return tuple(found.values())


def _comparison(cursor: Cursor) -> Bound:
    column = cursor.name("a column of the clustering key").text
    if cursor.takes("BETWEEN"):
        least = _value(cursor)
        cursor.needs("AND")
        return Bound(column, least, _value(cursor))
    sign = cursor.one_of(*_SIGNS)
    value = _value(cursor)
    return Bound(column, value if sign[0] in ">=" else None, value if sign[0] in "<=" else None)


def _value(cursor: Cursor) -> Value:
    """A number, or a text in quotes; a time in the form of statistics, in UTC if it has no zone."""
    negative = cursor.takes("-")
    token = cursor.text[cursor.span.start : cursor.span.end]
    if _NUMBER.fullmatch(token):
        cursor.at += 1
        number = float(token) if set(token) & set(".eE") else int(token)
        return -number if negative else number
    if negative:
        raise cursor.unexpected("a number")
    cursor.takes("DATE") or cursor.takes("TIMESTAMP")
    text = cursor.string("a number, or a text in quotes")
    moment = _MOMENT.fullmatch(text)
    if moment is None:
        return text
    return f"{moment[1]}T{moment[2]}" + ("" if _WITH_ZONE.search(text) else "Z")
