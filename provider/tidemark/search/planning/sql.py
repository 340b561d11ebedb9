"""Statements on search optimization, as text."""

from __future__ import annotations

import re

from tidemark.errors import NotYetSupported
from tidemark.model.foreign_json import whole_number
from tidemark.search.model.paths import Method
from tidemark.search.model.requests import Target
from tidemark.search.planning.statements import AddSearch, DescribeSearch, DropSearch, EstimateSearch, SearchStatement
from tidemark.sql.names import sql_name
from tidemark.sql.text import BLANK, ONE_NAME, Cursor

__all__ = ["parse_search_sql", "parse_targets"]

_FUNCTION = "SYSTEM$ESTIMATE_SEARCH_OPTIMIZATION_COSTS"
_ALTER = rf"ALTER\s+TABLE\s+(?:IF\s+EXISTS\s+)?{ONE_NAME}"
_FLAGS = re.DOTALL | re.IGNORECASE
_PATTERNS = (
    (re.compile(BLANK + _ALTER + r"\s+(?:ADD|DROP)\s+SEARCH\s+OPTIMIZATION\b", _FLAGS), "_alter"),
    (re.compile(BLANK + r"DESC(?:RIBE)?\s+SEARCH\s+OPTIMIZATION\b", _FLAGS), "_describe"),
    (re.compile(BLANK + r"SELECT\s+" + re.escape(_FUNCTION) + r"\s*\(", _FLAGS), "_estimate"),
)
_REFUSED = {
    "GEO": "Compute a cell of each place, as a column, and search that by EQUALITY.",
    "FULL_TEXT": "SUBSTRING finds parts of texts from five characters on.",
}


def parse_search_sql(text: str) -> SearchStatement | None:
    """The statement, if it is one on search optimization.

    Raises SqlCompilationError with the place in the text, and NotYetSupported for methods that have no counterpart.
    """
    for pattern, reader in _PATTERNS:
        if pattern.match(text):
            found: SearchStatement = _READERS[reader](Cursor(text))
            return found
    return None


def parse_targets(text: str) -> tuple[Target, ...]:
    """The targets behind ON: `EQUALITY(a, b.c), SUBSTRING(d)`. Raises as `parse_search_sql`."""
    cursor = Cursor(text)
    found = _targets(cursor, only_methods=True)
    cursor.end()
    return found


def _alter(cursor: Cursor) -> AddSearch | DropSearch:
    cursor.needs("ALTER", "TABLE")
    if_exists = cursor.takes("IF", "EXISTS")
    table = sql_name(cursor.name("the name of a table"))
    adds = cursor.one_of("ADD", "DROP") == "ADD"
    cursor.needs("SEARCH", "OPTIMIZATION")
    targets = _targets(cursor, only_methods=adds) if cursor.takes("ON") else ()
    cursor.end()
    return AddSearch(table, targets, if_exists) if adds else DropSearch(table, targets, if_exists)


def _describe(cursor: Cursor) -> DescribeSearch:
    cursor.one_of("DESCRIBE", "DESC")
    cursor.needs("SEARCH", "OPTIMIZATION", "ON")
    table = sql_name(cursor.name("the name of a table"))
    cursor.end()
    return DescribeSearch(table)


def _estimate(cursor: Cursor) -> EstimateSearch:
    title = cursor.text.strip().rstrip(";").rstrip()
    title = title[title.upper().index("SYSTEM$") :]
    cursor.needs("SELECT", _FUNCTION, "(")
    table = cursor.string("the name of a table in quotes")
    targets = parse_targets(cursor.string("EQUALITY(…) in quotes")) if cursor.takes(",") else ()
    cursor.needs(")")
    cursor.end()
    return EstimateSearch(table, targets, title)


def _targets(cursor: Cursor, *, only_methods: bool) -> tuple[Target, ...]:
    found = list(_target(cursor, only_methods=only_methods))
    while cursor.takes(","):
        found += _target(cursor, only_methods=only_methods)
    return tuple(dict.fromkeys(found))


def _target(cursor: Cursor, *, only_methods: bool) -> list[Target]:
    for word, instead in _REFUSED.items():
        if cursor.sees(word, "("):
            raise NotYetSupported(feature=f"search optimization by {word}", instead=instead)
    method = next((one for one in Method if cursor.sees(one.value, "(")), None)
    if method is None and only_methods:
        raise cursor.unexpected(" or ".join(f"{one.value}(…)" for one in Method))
    if method is None:
        number = _number(cursor)
        return [number if number is not None else Target(None, _column(cursor))]
    cursor.needs(method.value, "(")
    columns = [()] if cursor.takes("*") else _columns(cursor)
    cursor.needs(")")
    return [Target(method, parts) for parts in columns]


def _number(cursor: Cursor) -> Target | None:
    text = cursor.text[cursor.span.start : cursor.span.end]
    if whole_number(text) is None:
        return None
    return Target(None, (), cursor.whole_number("the id of a path"))


def _columns(cursor: Cursor) -> list[tuple[str, ...]]:
    columns = [_column(cursor)]
    while cursor.takes(","):
        columns.append(_column(cursor))
    return columns


def _column(cursor: Cursor) -> tuple[str, ...]:
    """A column, or a field of a struct: `a.b` or `a:b`, as the source system writes a path."""
    parts = list(cursor.name("the name of a column").parts)
    while cursor.takes(":") or cursor.takes("."):
        parts += cursor.name("the name of a field").parts
    return tuple(parts)


_READERS = {"_alter": _alter, "_describe": _describe, "_estimate": _estimate}
