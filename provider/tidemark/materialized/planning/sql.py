"""Statements of materialized views and dynamic tables, as text."""

from __future__ import annotations

import re
from collections.abc import Callable

from tidemark.errors import NotYetSupported
from tidemark.materialized.model.definitions import KeptKind, TargetLag
from tidemark.materialized.planning.names import read_name, words_of
from tidemark.materialized.planning.sql_create import WAREHOUSE_NOTICE, create_view, read_lag, read_warehouse
from tidemark.materialized.planning.statements import (
    AlterView,
    DescribeView,
    DropView,
    RefreshView,
    ResumeView,
    ShowViews,
    SuspendView,
    ViewStatement,
)
from tidemark.sql.text import BLANK, Cursor

__all__ = ["parse_view_sql"]

_OBJECT = r"(?:MATERIALIZED\s+VIEW|DYNAMIC\s+TABLE)"
_ANOTHER = "Create it under the new name, and drop this one."
_NOT_ALTERED = {
    "RENAME": _ANOTHER,
    "SWAP": _ANOTHER,
    "CLUSTER BY": "CREATE OR REPLACE gives it another clustering.",
    "DROP CLUSTERING KEY": "CREATE OR REPLACE gives it another clustering.",
    "SUSPEND RECLUSTER": "OPTIMIZE clusters the kept table, whenever you run it.",
    "RESUME RECLUSTER": "OPTIMIZE clusters the kept table, whenever you run it.",
    "SET SECURE": "Grant rights on the bases and on the kept table.",
    "UNSET SECURE": "Grant rights on the bases and on the kept table.",
    "SET TAG": "Say it in the COMMENT.",
    "UNSET TAG": "Say it in the COMMENT.",
}


def parse_view_sql(text: str) -> ViewStatement | None:
    """The statement, if it is one of materialized views or dynamic tables.

    Raises SqlCompilationError with the place in the text, and NotYetSupported for parts that have no counterpart.
    """
    for pattern, read in _READERS:
        if pattern.match(text):
            return read(Cursor(text))
    return None


def _begins(pattern: str) -> re.Pattern[str]:
    return re.compile(BLANK + pattern, re.DOTALL | re.IGNORECASE)


def _kind(cursor: Cursor) -> KeptKind:
    word = cursor.one_of("MATERIALIZED VIEW", "DYNAMIC TABLE")
    return KeptKind.MATERIALIZED_VIEW if word == "MATERIALIZED VIEW" else KeptKind.DYNAMIC_TABLE


def _alter(cursor: Cursor) -> AlterView | SuspendView | ResumeView | RefreshView:
    cursor.needs("ALTER")
    kind = _kind(cursor)
    if_exists = cursor.takes("IF", "EXISTS")
    name = read_name(cursor, kind)
    for words, instead in _NOT_ALTERED.items():
        if cursor.sees(*words.split()) or cursor.sees(words):
            raise NotYetSupported(feature=f"{words} of {words_of(kind)}", instead=instead)
    action = cursor.one_of("SUSPEND", "RESUME", "REFRESH", "SET", "UNSET")
    if action in ("SET", "UNSET"):
        return _set(cursor, kind, name, if_exists, unset=action == "UNSET")
    if action == "REFRESH" and cursor.sees("COPY"):
        raise NotYetSupported(
            feature="REFRESH … COPY SESSION", instead="The query has the settings of the session that created it."
        )
    cursor.end()
    if action == "SUSPEND":
        return SuspendView(kind, name, if_exists)
    return ResumeView(kind, name, if_exists) if action == "RESUME" else RefreshView(kind, name, if_exists)


def _set(cursor: Cursor, kind: KeptKind, name: str, if_exists: bool, *, unset: bool) -> AlterView:
    if unset:
        cursor.needs("COMMENT")
        cursor.end()
        return AlterView(kind, name, unset_comment=True, if_exists=if_exists)
    lag: TargetLag | None = None
    comment: str | None = None
    notices: tuple[str, ...] = ()
    words = ("COMMENT", "TARGET_LAG", "WAREHOUSE") if kind is KeptKind.DYNAMIC_TABLE else ("COMMENT",)
    first = True
    while first or not (cursor.sees(";") or cursor.span.start >= len(cursor.text)):
        first = False
        word = cursor.one_of(*words)
        if word == "TARGET_LAG":
            lag = read_lag(cursor)
        elif word == "WAREHOUSE":
            read_warehouse(cursor)
            notices = (WAREHOUSE_NOTICE,)
        else:
            cursor.needs("=")
            comment = cursor.string("a comment in quotes")
        cursor.takes(",")
    cursor.end()
    return AlterView(kind, name, lag, comment, if_exists=if_exists, notices=notices)


def _drop(cursor: Cursor) -> DropView:
    cursor.needs("DROP")
    kind = _kind(cursor)
    if_exists = cursor.takes("IF", "EXISTS")
    name = read_name(cursor, kind)
    cursor.end()
    return DropView(kind, name, if_exists)


def _undrop(cursor: Cursor) -> ViewStatement:
    raise cursor.fails("a dropped view cannot be brought back; its kept table still exists, and CREATE uses it again")


def _describe(cursor: Cursor) -> DescribeView:
    cursor.one_of("DESCRIBE", "DESC")
    kind = _kind(cursor)
    name = read_name(cursor, kind)
    cursor.end()
    return DescribeView(kind, name)


def _show(cursor: Cursor) -> ShowViews:
    cursor.needs("SHOW")
    word = cursor.one_of("MATERIALIZED VIEWS", "DYNAMIC TABLES")
    kind = KeptKind.MATERIALIZED_VIEW if word == "MATERIALIZED VIEWS" else KeptKind.DYNAMIC_TABLE
    like = cursor.string("a pattern in quotes") if cursor.takes("LIKE") else None
    database, schema = _scope(cursor) if cursor.takes("IN") else (None, None)
    starts_with, limit, from_name = cursor.page()
    cursor.end()
    return ShowViews(kind, like, database, schema, starts_with, limit, from_name)


def _scope(cursor: Cursor) -> tuple[str | None, str | None]:
    """(database, schema) behind IN; None stands for all."""
    if cursor.takes("ACCOUNT"):
        return None, None
    at = "database" if cursor.takes("DATABASE") else "schema"
    cursor.takes("SCHEMA")
    name = cursor.name(f"the name of a {at}, or ACCOUNT")
    if at == "database":
        return name.parts[-1], None
    return (name.parts[-2] if len(name.parts) > 1 else None), name.parts[-1]


_READERS: tuple[tuple[re.Pattern[str], Callable[[Cursor], ViewStatement]], ...] = (
    (
        _begins(
            r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:(?:SECURE\s+)?MATERIALIZED\s+VIEW|(?:TRANSIENT\s+)?DYNAMIC\s+(?:ICEBERG\s+)?TABLE)\b"
        ),
        create_view,
    ),
    (_begins(rf"ALTER\s+{_OBJECT}\b"), _alter),
    (_begins(rf"DROP\s+{_OBJECT}\b"), _drop),
    (_begins(rf"UNDROP\s+{_OBJECT}\b"), _undrop),
    (_begins(rf"DESC(?:RIBE)?\s+{_OBJECT}\b"), _describe),
    (_begins(r"SHOW\s+(?:MATERIALIZED\s+VIEWS|DYNAMIC\s+TABLES)\b"), _show),
)
