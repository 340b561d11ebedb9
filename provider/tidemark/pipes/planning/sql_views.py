"""Mentions of the histories of loads in a query: functions of the source system that Spark has not."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidemark.errors import NotYetSupported, SqlCompilationError
from tidemark.pipes.planning.sql_options import literal
from tidemark.sql.foreign_sql import SNOWFLAKE, SPARK, SqlNotUnderstood, tree_of, written
from tidemark.sql.text import Cursor, Span

__all__ = ["LoadHistoryMention", "find_load_histories"]

_HISTORY = "COPY_HISTORY"
_REFUSED = {
    "LOAD_HISTORY": "TABLE(INFORMATION_SCHEMA.COPY_HISTORY(TABLE_NAME => '…', START_TIME => …)) has the same rows.",
    "PIPE_USAGE_HISTORY": "The runs of a pipe report files, rows and bytes in Airflow.",
}
_NAMES = re.compile("|".join((_HISTORY, *_REFUSED)), re.IGNORECASE)
_ARGUMENTS = ("TABLE_NAME", "START_TIME", "END_TIME", "RESULT_LIMIT", "PIPE_NAME")


@dataclass(frozen=True)
class LoadHistoryMention:
    """`TABLE(INFORMATION_SCHEMA.COPY_HISTORY(…))`. Times are expressions of Spark; `end_time` None: now."""

    table: str
    start_time: str
    span: Span
    end_time: str | None = None
    result_limit: int | None = None


def find_load_histories(text: str) -> tuple[LoadHistoryMention, ...]:
    """The mentions in the text, in its order. None in a text that cannot be taken apart: Spark says why.

    Raises SqlCompilationError at a wrong argument, and NotYetSupported for histories that are not kept.
    """
    if _NAMES.search(text) is None:
        return ()
    try:
        cursor = Cursor(text)
    except SqlCompilationError:
        return ()
    found: list[LoadHistoryMention] = []
    while cursor.at < len(cursor.tokens):
        mention = _mention(cursor)
        if mention is None:
            cursor.at += 1
        else:
            found.append(mention)
    return tuple(found)


def _mention(cursor: Cursor) -> LoadHistoryMention | None:
    """The mention at the cursor, which is read; otherwise the cursor stays."""
    at, start = cursor.at, cursor.span.start
    if not cursor.takes("TABLE", "("):
        return None
    _take_qualifier(cursor)
    for name, instead in _REFUSED.items():
        if cursor.sees(name, "("):
            raise NotYetSupported(feature=f"INFORMATION_SCHEMA.{name}", instead=instead)
    if not cursor.takes(_HISTORY, "("):
        cursor.at = at
        return None
    arguments = _arguments(cursor)
    end = cursor.span.end
    cursor.needs(")")
    return _checked(cursor, arguments, Span(start, end))


def _take_qualifier(cursor: Cursor) -> None:
    """INFORMATION_SCHEMA, or a database and it."""
    if not cursor.takes("INFORMATION_SCHEMA", ".") and _tokens(cursor, 1, 4) == [".", "INFORMATION_SCHEMA", "."]:
        cursor.at += 4


def _tokens(cursor: Cursor, first: int, end: int) -> Sequence[str]:
    return [one.text.upper() for one in cursor.tokens[cursor.at + first : cursor.at + end]]


def _arguments(cursor: Cursor) -> dict[str, Span]:
    """The text of each argument; the closing parenthesis is read."""
    found: dict[str, Span] = {}
    while not cursor.takes(")"):
        at = cursor.span
        name = cursor.one_of(*_ARGUMENTS)
        if name in found:
            raise cursor.fails(f"{name} is given twice", at)
        cursor.needs("=>")
        found[name] = _expression(cursor)
        if not cursor.sees(")"):
            cursor.needs(",")
    return found


def _expression(cursor: Cursor) -> Span:
    start, depth = cursor.span, 0
    end = start.start
    while cursor.at < len(cursor.tokens) and not (depth == 0 and (cursor.sees(",") or cursor.sees(")"))):
        depth += 1 if cursor.sees("(") else -1 if cursor.sees(")") else 0
        end = cursor.span.end
        cursor.at += 1
    if end == start.start:
        raise cursor.unexpected("a value")
    return Span(start.start, end)


def _checked(cursor: Cursor, given: Mapping[str, Span], span: Span) -> LoadHistoryMention:
    if "PIPE_NAME" in given:
        raise cursor.fails("COPY_HISTORY of a pipe is that of its table: TABLE_NAME => '…'", given["PIPE_NAME"])
    for needed in ("TABLE_NAME", "START_TIME"):
        if needed not in given:
            raise cursor.fails(f"{_HISTORY} needs {needed} => …", span)
    end_time = _spark(cursor, given["END_TIME"]) if "END_TIME" in given else None
    limit = given.get("RESULT_LIMIT")
    rows = None if limit is None else Cursor(_text(cursor, limit)).whole_number("a number of rows")
    table, start_time = _table(cursor, given["TABLE_NAME"]), _spark(cursor, given["START_TIME"])
    return LoadHistoryMention(table, start_time, span, end_time, rows)


def _text(cursor: Cursor, span: Span) -> str:
    return cursor.text[span.start : span.end]


def _table(cursor: Cursor, span: Span) -> str:
    inner = Cursor(_text(cursor, span))
    try:
        name = literal(inner, "the name of a table in quotes")
        inner.end()
    except SqlCompilationError as error:
        raise cursor.fails("TABLE_NAME is the name of a table in quotes", span) from error
    return name


def _spark(cursor: Cursor, span: Span) -> str:
    """The expression in Spark's SQL."""
    text = _text(cursor, span)
    try:
        return written(tree_of(f"SELECT {text}", SNOWFLAKE), SPARK, comments=False).removeprefix("SELECT ")
    except SqlNotUnderstood as error:
        raise cursor.fails(f"{text!r} is not an expression of a time: {error}", span) from error
