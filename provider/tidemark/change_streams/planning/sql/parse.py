"""CREATE, ALTER and DROP CHANGE STREAM."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import TokenType

from tidemark.change_streams.planning.definition import TableRequest, WatchRequest
from tidemark.change_streams.planning.options import OPTIONS
from tidemark.change_streams.planning.sql.statements import (
    ChangeStreamStatement,
    CreateChangeStream,
    DropChangeStream,
    OptionValue,
    SetChangeStreamFor,
    SetChangeStreamOptions,
    SuspendChangeStream,
)
from tidemark.sql.names import sql_name
from tidemark.sql.text import BLANK, Cursor, Span, SqlName

__all__ = ["parse_change_stream_sql"]

_BEGINNING = re.compile(rf"{BLANK}(CREATE|ALTER|DROP)(?:\s+OR\s+\w+)?\s+CHANGE\s+STREAM\b", re.DOTALL | re.IGNORECASE)


def parse_change_stream_sql(text: str) -> ChangeStreamStatement | None:
    """The statement, if it begins as one that defines a change stream.

    Raises SqlCompilationError with the place in the text.
    """
    begins = _BEGINNING.match(text)
    return None if begins is None else _READERS[begins[1].upper()](Cursor(text))


def _create(cursor: Cursor) -> CreateChangeStream:
    cursor.needs("CREATE", "CHANGE", "STREAM")
    if_not_exists = cursor.takes("IF", "NOT", "EXISTS")
    name = _stream(cursor)
    watch = _watch(cursor) if cursor.takes("FOR") else WatchRequest()
    options = _options(cursor) if cursor.sees("OPTIONS") else {}
    cursor.end()
    return CreateChangeStream(name, watch, _known(cursor, options), if_not_exists)


def _alter(cursor: Cursor) -> SetChangeStreamFor | SetChangeStreamOptions | SuspendChangeStream:
    cursor.needs("ALTER", "CHANGE", "STREAM")
    name = _stream(cursor)
    action = cursor.one_of("SET FOR", "SET OPTIONS", "DROP FOR ALL")
    if action == "SET FOR":
        watch = _watch(cursor)
        cursor.end()
        return SetChangeStreamFor(name, watch)
    if action == "SET OPTIONS":
        cursor.at -= 1
        options = _options(cursor)
        cursor.end()
        return SetChangeStreamOptions(name, _known(cursor, options))
    cursor.end()
    return SuspendChangeStream(name)


def _drop(cursor: Cursor) -> DropChangeStream:
    cursor.needs("DROP", "CHANGE", "STREAM")
    if_exists = cursor.takes("IF", "EXISTS")
    name = _stream(cursor)
    cursor.end()
    return DropChangeStream(name, if_exists)


def _stream(cursor: Cursor) -> SqlName:
    """The name of a change stream, which has one part, as READ_ and the name are the name of a function."""
    name = cursor.name("the name of the change stream")
    if len(name.parts) > 1:
        raise cursor.fails("the name of a change stream has one part", name.span)
    return name


def _watch(cursor: Cursor) -> WatchRequest:
    """The tables behind FOR. In quotes ALL is the name of a table."""
    if cursor.takes("ALL"):
        return WatchRequest(everything=True)
    tables = [_table(cursor)]
    while cursor.takes(","):
        tables.append(_table(cursor))
    return WatchRequest(tables=tuple(tables))


def _table(cursor: Cursor) -> TableRequest:
    _require_no_all(cursor)
    name = sql_name(cursor.name("the name of a table"))
    return TableRequest(name, _columns(cursor) if cursor.takes("(") else None)


def _columns(cursor: Cursor) -> tuple[str, ...]:
    if cursor.takes(")"):
        return ()
    columns = [_column(cursor)]
    while cursor.takes(","):
        columns.append(_column(cursor))
    cursor.needs(")")
    return tuple(columns)


def _require_no_all(cursor: Cursor) -> None:
    """A reserved word, as there."""
    if cursor.sees("ALL"):
        raise cursor.fails("ALL excludes other names; put a table of that name in quotes, as in `ALL`")


def _column(cursor: Cursor) -> str:
    _require_no_all(cursor)
    name = cursor.name("the name of a column")
    if len(name.parts) > 1:
        raise cursor.fails("a column of the table is watched as a whole, not a part of it", name.span)
    return name.parts[0]


def _options(cursor: Cursor) -> _Options:
    cursor.needs("OPTIONS", "(")
    options: _Options = {}
    while not (options and cursor.takes(")")):
        if options:
            cursor.needs(",")
        name = cursor.name("the name of an option")
        if name.text.lower() in options:
            raise cursor.fails(f"option {name.text} is given twice", name.span)
        cursor.needs("=")
        place = cursor.span
        options[name.text.lower()] = _Given(_value(cursor), name.span, place)
    return options


def _known(cursor: Cursor, options: _Options) -> Mapping[str, OptionValue]:
    """Their values. An option that does not exist, or one of another type, is an error of syntax, as there. A value
    that is out of its range is refused later.
    """
    for name, given in options.items():
        if name not in OPTIONS:
            raise cursor.fails(f"it has no option {name!r}; there are {', '.join(OPTIONS)}", given.at)
        kind, words = _TYPES[OPTIONS[name]]
        if given.value is not None and not isinstance(given.value, kind):
            raise cursor.fails(f"option {name} takes {words}, or NULL", given.value_at)
    return {name: given.value for name, given in options.items()}


def _value(cursor: Cursor) -> OptionValue:
    """A text in quotes of either kind, a whole number, TRUE, FALSE or NULL."""
    for word, value in _WORDS.items():
        if cursor.takes(word):
            return value
    token = cursor.tokens[cursor.at] if cursor.at < len(cursor.tokens) else None
    if token is not None and token.token_type is TokenType.IDENTIFIER and cursor.text[token.start] == '"':
        cursor.at += 1
        return token.text
    if token is not None and token.token_type is TokenType.NUMBER:
        return cursor.whole_number("a whole number")
    return cursor.string("a text in quotes, a number, TRUE, FALSE or NULL")


@dataclass(frozen=True)
class _Given:
    """The value of an option, and the places of its name and of the value."""

    value: OptionValue
    at: Span
    value_at: Span


_Options = dict[str, _Given]
_TYPES: Mapping[str, tuple[type, str]] = {"STRING": (str, "a text in quotes"), "BOOL": (bool, "TRUE or FALSE")}
_WORDS: Mapping[str, bool | None] = {"TRUE": True, "FALSE": False, "NULL": None}
_READERS: Mapping[str, Callable[[Cursor], ChangeStreamStatement]] = {"CREATE": _create, "ALTER": _alter, "DROP": _drop}
