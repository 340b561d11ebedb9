"""Points in a table's history as SQL gives them: AT|BEFORE(kind => constant) (R8, R112)."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from tidemark.sql.text import Cursor, Span, name_in
from tidemark.streams.planning.stream_sql.constants import Constant, Constants, NotConstant
from tidemark.streams.planning.stream_sql.statements import PointKind, SqlPoint

__all__ = ["read_point", "sees_point"]


def sees_point(cursor: Cursor, *words: str) -> bool:
    """Whether one of the words, AT or BEFORE or END, comes next with a parenthesis."""
    return any(cursor.sees(word, "(") for word in words)


def read_point(cursor: Cursor, constants: Constants) -> SqlPoint:
    """Read `AT|BEFORE|END(kind => constant)`.

    Raises SqlCompilationError where the value is no constant (R8e), NULL (R8d), of another kind, or an offset into
    the future (R8a).
    """
    start = cursor.span.start
    word = cursor.one_of("AT", "BEFORE", "END")
    cursor.needs("(")
    kind = PointKind(cursor.one_of(*PointKind))
    cursor.needs("=>")
    inside = cursor.inside()
    span = Span(start, inside.end + 1)
    value = _value(cursor, word, kind, inside, constants)
    return SqlPoint(kind, value, before=word == "BEFORE", span=span)


def _value(
    cursor: Cursor, word: str, kind: PointKind, inside: Span, constants: Constants
) -> datetime | float | int | str:
    text = cursor.text[inside.start : inside.end].strip()
    try:
        value = constants.value(text)
    except NotConstant as error:
        problem = f"the point in {word}({kind} => {text}) must be a constant ({error} is none that is known here)"
        raise cursor.fails(problem, inside) from error
    if value is None:
        raise cursor.fails(f"NULL is no {kind.lower()}: {word}({kind} => {text})", inside)
    found = _fit(cursor, kind, value, inside, constants)
    if found is None:
        raise cursor.fails(f"Invalid data type [{_plain(value)}] in {word}({kind} => {text})", inside)
    return found


def _fit(
    cursor: Cursor, kind: PointKind, value: Constant, inside: Span, constants: Constants
) -> datetime | float | int | str | None:
    """The value as the kind wants it; None where it is of another type."""
    if kind is PointKind.TIMESTAMP:
        try:
            return constants.moment(value)
        except NotConstant:
            return None
    if kind is PointKind.OFFSET:
        return float(value) if isinstance(value, Decimal) and value <= 0 else None
    if kind is PointKind.VERSION:
        return int(value) if isinstance(value, Decimal) and value >= 0 and value == int(value) else None
    if not isinstance(value, str):
        return None
    return name_in(cursor.text, value, inside).text if kind is PointKind.STREAM else value


def _plain(value: Constant) -> str:
    return format(value.normalize(), "f") if isinstance(value, Decimal) else str(value)
