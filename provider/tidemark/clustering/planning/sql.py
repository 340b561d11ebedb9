"""Statements of clustering, as text."""

from __future__ import annotations

import re

from tidemark.clustering.planning.conditions import read_bounds
from tidemark.clustering.planning.expressions import refused_expression
from tidemark.clustering.planning.statements import (
    ClusterBy,
    ClusteringCall,
    ClusteringStatement,
    DropKey,
    ReclusterNow,
    ResumeRecluster,
    SuspendRecluster,
)
from tidemark.errors import NotYetSupported, SqlCompilationError
from tidemark.model.foreign_json import whole_number
from tidemark.sql.text import BLANK, ONE_NAME, Cursor, SqlName, name_in

__all__ = ["DEPTH", "INFORMATION", "parse_clustering_sql"]

INFORMATION, DEPTH = "SYSTEM$CLUSTERING_INFORMATION", "SYSTEM$CLUSTERING_DEPTH"
_MOST_ERRORS = 10_000
_CALL = re.compile(BLANK + rf"SELECT\s+(?:{re.escape(INFORMATION)}|{re.escape(DEPTH)})\s*\(", re.DOTALL | re.IGNORECASE)
_ALTER = re.compile(
    BLANK
    + rf"ALTER\s+TABLE\s+(?:IF\s+EXISTS\s+)?{ONE_NAME}\s+"
    + r"(?:CLUSTER\s+BY|DROP\s+CLUSTERING|SUSPEND|RESUME|RECLUSTER)\b",
    re.DOTALL | re.IGNORECASE,
)


def parse_clustering_sql(text: str) -> ClusteringStatement | None:
    """The statement, if it is one of clustering. CLUSTER BY NONE is Delta's, and means the same as DROP CLUSTERING KEY.

    Raises SqlCompilationError with the place in the text, ClusteringKeyRefused for an expression, and NotYetSupported.
    """
    if _CALL.match(text):
        return _call(Cursor(text))
    return _alter(Cursor(text)) if _ALTER.match(text) else None


def _alter(cursor: Cursor) -> ClusteringStatement:
    cursor.needs("ALTER", "TABLE")
    if cursor.takes("IF", "EXISTS"):
        raise NotYetSupported(feature="ALTER TABLE IF EXISTS … for clustering", instead="Leave IF EXISTS out.")
    table = cursor.name("the name of a table")
    if _takes_cluster_by(cursor):
        return _cluster_by(cursor, table)
    action = cursor.one_of("DROP CLUSTERING KEY", "SUSPEND RECLUSTER", "RESUME RECLUSTER", "RECLUSTER")
    if action == "RECLUSTER":
        return _recluster(cursor, table)
    cursor.end()
    if action == "DROP CLUSTERING KEY":
        return DropKey(table)
    return SuspendRecluster(table) if action == "SUSPEND RECLUSTER" else ResumeRecluster(table)


def _takes_cluster_by(cursor: Cursor) -> bool:
    """Both words are one token, with the white space between them."""
    coming = cursor.text[cursor.span.start : cursor.span.end].upper().split()
    if coming == ["CLUSTER", "BY"]:
        cursor.at += 1
        return True
    return cursor.takes("CLUSTER", "BY")


def _cluster_by(cursor: Cursor, table: SqlName) -> ClusterBy | DropKey:
    if cursor.takes("NONE"):
        cursor.end()
        return DropKey(table)
    if cursor.sees("AUTO"):
        raise NotYetSupported(feature="CLUSTER BY AUTO", instead="Name the columns.")
    cursor.takes("LINEAR")
    columns = _columns(cursor, table.text)
    cursor.end()
    return ClusterBy(table, columns)


def _recluster(cursor: Cursor, table: SqlName) -> ReclusterNow:
    max_size = None
    if cursor.takes("MAX_SIZE"):
        cursor.needs("=")
        max_size = cursor.whole_number("a number of bytes")
    if not cursor.takes("WHERE"):
        cursor.end()
        return ReclusterNow(table, max_size)
    begin = cursor.span.start
    read_bounds(cursor)
    where = cursor.text[begin : cursor.span.start].strip()
    cursor.end()
    return ReclusterNow(table, max_size, where)


def _columns(cursor: Cursor, table: str) -> tuple[str, ...]:
    """(c1, c2). Raises ClusteringKeyRefused for an expression."""
    cursor.needs("(")
    found = [_column(cursor, table)]
    while cursor.takes(","):
        found.append(_column(cursor, table))
    cursor.needs(")")
    return tuple(found)


def _column(cursor: Cursor, table: str) -> str:
    start = cursor.at
    try:
        name = cursor.name("the name of a column").text
        if cursor.sees(",") or cursor.sees(")"):
            return name
    except SqlCompilationError:
        if cursor.sees(")"):
            raise
    cursor.at = start
    raise refused_expression(table, _expression(cursor))


def _expression(cursor: Cursor) -> str:
    """The text of an element of the key, which is read."""
    begin, end, depth = cursor.span.start, cursor.span.start, 0
    while cursor.at < len(cursor.tokens):
        if depth == 0 and (cursor.sees(",") or cursor.sees(")")):
            break
        depth += cursor.sees("(") - cursor.sees(")")
        end = cursor.span.end
        cursor.at += 1
    return cursor.text[begin:end]


def _call(cursor: Cursor) -> ClusteringCall:
    cursor.needs("SELECT")
    begin = cursor.span.start
    function = cursor.one_of(INFORMATION, DEPTH)
    cursor.needs("(")
    at = cursor.span
    table = name_in(cursor.text, cursor.string("the name of a table in quotes"), at)
    columns: tuple[str, ...] = ()
    errors = None
    while cursor.takes(","):
        at = cursor.span
        number = whole_number(cursor.text[at.start : at.end])
        if number is None:
            said = cursor.string("columns in quotes, such as '(c1, c2)'")
            columns = _listed(said, table.text)
        else:
            errors = min(number, _MOST_ERRORS)
            cursor.whole_number("a number of errors")
    end = cursor.span.end
    cursor.needs(")")
    title = cursor.text[begin:end]
    if cursor.takes("AS"):
        title = cursor.name("a title").text
    if cursor.sees("FROM") or cursor.sees(","):
        raise NotYetSupported(feature=f"{function} within a query", instead=f"Write SELECT {function}(…) on its own.")
    cursor.end()
    return ClusteringCall(function, table, columns, errors, title)


def _listed(text: str, table: str) -> tuple[str, ...]:
    """The columns in a string, with or without parentheses, also as LINEAR(c1, c2)."""
    inner = text.strip()
    if inner.upper().startswith("LINEAR"):
        inner = inner[len("LINEAR") :].strip()
    cursor = Cursor(inner if inner.startswith("(") else f"({inner})")
    found = _columns(cursor, table)
    cursor.end()
    return found
