"""The parts of a query that Spark does not know: CHANGES, AT | BEFORE, and the system functions of streams."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token, TokenType

from tidemark.model.streams import StreamMode
from tidemark.sql.text import Cursor, Span, SqlName, is_name, name_in
from tidemark.streams.planning.stream_sql.constants import Constants
from tidemark.streams.planning.stream_sql.points import read_point
from tidemark.streams.planning.stream_sql.statements import (
    BacklogCall,
    ChangesClause,
    HasDataCall,
    PointKind,
    QueryPart,
    StreamQuery,
    TableTimestampCall,
    TimeTravel,
)

__all__ = ["read_query", "spliced"]

HAS_DATA = "SYSTEM$STREAM_HAS_DATA"
TIMESTAMP = "SYSTEM$STREAM_GET_TABLE_TIMESTAMP"
BACKLOG = "SYSTEM$STREAM_BACKLOG"


def read_query(cursor: Cursor, constants: Constants) -> StreamQuery | None:
    """The parts of any statement that Spark does not know; None where there is none. Raises SqlCompilationError."""
    parts: list[QueryPart] = []
    while cursor.at < len(cursor.tokens):
        at = cursor.at
        part = _part(cursor, constants)
        if part is None:
            cursor.at = at + 1
        else:
            parts.append(part)
    return StreamQuery(cursor.text, tuple(parts)) if parts else None


def spliced(query: StreamQuery, replacements: Sequence[str]) -> str:
    """The text with each part exchanged for what stands for it, in the order of the parts."""
    text = query.text
    for part, replacement in reversed(list(zip(query.parts, replacements, strict=True))):
        text = text[: part.span.start] + replacement + text[part.span.end :]
    return text


def _part(cursor: Cursor, constants: Constants) -> QueryPart | None:
    if cursor.sees("CHANGES", "(", "INFORMATION"):
        return _changes(cursor, constants)
    if any(cursor.sees(word, "(", kind, "=>") for word in ("AT", "BEFORE") for kind in PointKind):
        return _time_travel(cursor, constants)
    for function in (HAS_DATA, TIMESTAMP, BACKLOG):
        if cursor.sees(function, "("):
            return _call(cursor, function)
    return None


def _changes(cursor: Cursor, constants: Constants) -> ChangesClause:
    source = _name_before(cursor)
    cursor.needs("CHANGES", "(", "INFORMATION", "=>")
    information = cursor.one_of("DEFAULT", "APPEND_ONLY")
    cursor.needs(")")
    if not (cursor.sees("AT", "(") or cursor.sees("BEFORE", "(")):
        raise cursor.unexpected("AT(…) or BEFORE(…): CHANGES needs its start")
    start = read_point(cursor, constants)
    end = read_point(cursor, constants) if cursor.sees("END", "(") else None
    span = Span(source.span.start, (end or start).span.end)
    mode = StreamMode.STANDARD if information == "DEFAULT" else StreamMode.APPEND_ONLY
    return ChangesClause(source, mode, start, end, _alias_needed(cursor, source), span)


def _time_travel(cursor: Cursor, constants: Constants) -> TimeTravel:
    source = _name_before(cursor)
    point = read_point(cursor, constants)
    return TimeTravel(source, point, _alias_needed(cursor, source), Span(source.span.start, point.span.end))


def _call(cursor: Cursor, function: str) -> HasDataCall | TableTimestampCall | BacklogCall:
    first = cursor.at
    start = cursor.span.start
    cursor.needs(function, "(")
    span = cursor.span
    stream = name_in(cursor.text, cursor.string("the stream's name as a constant in quotes"), span)
    end = cursor.span.end
    cursor.needs(")")
    if function == BACKLOG:
        return _backlog(cursor, first, stream)
    title = cursor.text[start:end] if _whole_column(cursor, first) else None
    call = HasDataCall if function == HAS_DATA else TableTimestampCall
    return call(stream, title, Span(start, end))


def _backlog(cursor: Cursor, first: int, stream: SqlName) -> BacklogCall:
    before = [token.text.upper() for token in cursor.tokens[max(0, first - 2) : first]]
    if before != ["TABLE", "("] or not cursor.sees(")"):
        problem = f"{BACKLOG} is a table function: SELECT * FROM TABLE({BACKLOG}('{stream.text}'))"
        token = cursor.tokens[first]
        raise cursor.fails(problem, Span(token.start, token.end + 1))
    start, end = cursor.tokens[first - 2].start, cursor.span.end
    cursor.needs(")")
    return BacklogCall(stream, Span(start, end))


def _name_before(cursor: Cursor) -> SqlName:
    """The table's name that ends at the cursor."""
    last = first = cursor.at - 1
    while first >= 2 and cursor.tokens[first - 1].text == "." and is_name(cursor.tokens[first - 2]):
        first -= 2
    if last < 0 or not is_name(cursor.tokens[last]):
        raise cursor.fails("syntax error: a table's name must precede this")
    parts = tuple(token.text for token in cursor.tokens[first : last + 1 : 2])
    return SqlName(parts, Span(cursor.tokens[first].start, cursor.tokens[last].end + 1))


def _alias_needed(cursor: Cursor, source: SqlName) -> str | None:
    """The table's own name, unless the query gives it another one."""
    if cursor.sees("AS") or _is_alias(cursor.tokens[cursor.at : cursor.at + 1]):
        return None
    return source.parts[-1]


def _is_alias(coming: Sequence[Token]) -> bool:
    return bool(coming) and coming[0].token_type in (TokenType.VAR, TokenType.IDENTIFIER)


def _whole_column(cursor: Cursor, first: int) -> bool:
    """Whether the call before the cursor, which begins at token `first`, is a column of its own without a name."""
    before = cursor.tokens[first - 1].text.upper() if first else ""
    ends = cursor.at == len(cursor.tokens) or any(cursor.sees(sign) for sign in (",", ";", "FROM", ")"))
    return before in ("SELECT", ",") and ends
