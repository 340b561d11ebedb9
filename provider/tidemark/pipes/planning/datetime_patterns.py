"""Formats of dates and timestamps: patterns of the source system in Spark's letters."""

from __future__ import annotations

import re

from tidemark.errors import InvalidArgument, NotYetSupported

__all__ = ["spark_pattern"]

_ELEMENTS = {
    "YYYY": "yyyy",
    "UUUU": "yyyy",
    "YY": "yy",
    "MMMM": "MMMM",
    "MON": "MMM",
    "MM": "MM",
    "MI": "mm",
    "DD": "dd",
    "HH24": "HH",
    "HH12": "hh",
    "AM": "a",
    "PM": "a",
    "SS": "ss",
    "TZH:TZM": "XXX",
    "TZHTZM": "XX",
    "TZH": "X",
}
_PART = re.compile(
    rf"({'|'.join(sorted(_ELEMENTS, key=len, reverse=True))})|FF([0-9]?)|(DY)|\"([^\"]*)\"|([A-Za-z]+?)"
    r"(?=YYYY|YY|HH|[^A-Za-z]|$)|([^A-Za-z\"])",
    re.IGNORECASE,
)
_MEANT = re.compile(r"[\[\]{}#]")  # characters that have a meaning in Spark's patterns


def spark_pattern(text: str, option: str = "format") -> str | None:
    """The pattern in Spark's letters; None for AUTO. Raises InvalidArgument or NotYetSupported.

    `FF` reads one to nine digits of a fraction. Text between the elements is itself; letters may be in double quotes.
    """
    if text.upper() == "AUTO":
        return None
    parts, at = [], 0
    while at < len(text):
        found = _PART.match(text, at)
        if found is None:
            raise _wrong(option, text, at)
        parts.append(_written(option, text, found))
        at = found.end()
    pattern = "".join(parts).replace("''", "") if "'" not in text else "".join(parts)
    if not pattern:
        raise InvalidArgument(argument=option, value=text, problem="it is empty; AUTO is the default")
    return pattern


def _written(option: str, text: str, found: re.Match[str]) -> str:
    element, digits, day, quoted, letters, sign = found.groups()
    if element:
        return _ELEMENTS[element.upper()]
    if digits is not None:
        return "S" * int(digits or 9)
    if day:
        raise NotYetSupported(feature=f"DY in {option} = {text!r}", instead="Spark reads no names of days.")
    if letters and letters.upper() != "T":
        raise _wrong(option, text, found.start())
    literal = quoted if quoted is not None else letters or sign
    return _literal(literal)


def _literal(text: str) -> str:
    text = text.replace("'", "''")
    return f"'{text}'" if re.search(r"[A-Za-z]", text) or _MEANT.search(text) else text


def _wrong(option: str, text: str, at: int) -> InvalidArgument:
    known = ", ".join((*_ELEMENTS, "FF0 … FF9"))
    problem = f"it has no meaning from {text[at:]!r} on; there are {known}, and text in double quotes"
    return InvalidArgument(argument=option, value=text, problem=problem)
