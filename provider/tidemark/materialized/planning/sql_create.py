"""CREATE MATERIALIZED VIEW and CREATE DYNAMIC TABLE, as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from tidemark.errors import InvalidArgument, NotYetSupported
from tidemark.materialized.model.definitions import Initialize, KeptKind, RefreshMode, TargetLag
from tidemark.materialized.planning.lags import target_lag
from tidemark.materialized.planning.names import read_name, words_of
from tidemark.materialized.planning.statements import CreateView
from tidemark.sql.text import Cursor, Span

__all__ = ["WAREHOUSE_NOTICE", "create_view", "read_lag", "read_warehouse"]

WAREHOUSE_NOTICE = "WAREHOUSE was ignored: the Tidemark connection names the Spark that refreshes."
_GRANTS_NOTICE = "COPY GRANTS was ignored: who may read a table is decided by the storage and the catalog."
_TRANSIENT_NOTICE = "TRANSIENT was ignored: the retention of a Delta table is a property of it."
_AT_CREATION = "Set the property on the kept table: ALTER TABLE delta.`path` SET TBLPROPERTIES (…)."
_BY_OTHERS = "Rights on rows and columns belong to the catalog that Spark reads."
_UNSUPPORTED = {
    "COPY SESSION": "The query has the settings of the session that creates it.",
    "DATA_RETENTION_TIME_IN_DAYS": _AT_CREATION,
    "MAX_DATA_EXTENSION_TIME_IN_DAYS": _AT_CREATION,
    "ROW ACCESS POLICY": _BY_OTHERS,
    "AGGREGATION POLICY": _BY_OTHERS,
    "WITH": _BY_OTHERS,
    "TAG": "Say it in the COMMENT.",
    "REQUIRE USER": "A refresh has no user; the tasks of a DAG refresh.",
    "IMMUTABLE WHERE": "Keep the old rows in a table of their own, and unite both in a view.",
    "BACKFILL": "The first refresh reads the bases.",
    "EXECUTE AS": "A refresh has no user; the tasks of a DAG refresh.",
    "ROW_TIMESTAMP": "A stream on the table has the time of each change.",
}
Choice = TypeVar("Choice", bound=StrEnum)


@dataclass
class _Options:
    """The options between the name and AS, each at most once."""

    cursor: Cursor
    kind: KeptKind
    notices: list[str] = field(default_factory=list)
    spans: dict[str, Span] = field(default_factory=dict)
    lag: TargetLag | None = None
    mode: RefreshMode = RefreshMode.AUTO
    initialize: Initialize = Initialize.ON_CREATE
    cluster_by: tuple[str, ...] = ()
    comment: str | None = None

    def read(self) -> None:
        """Up to AS. Raises SqlCompilationError, NotYetSupported."""
        every = self.kind is KeptKind.DYNAMIC_TABLE
        known = {name: read for name, read in _READERS.items() if every or name in _OF_ALL}
        while not self.cursor.sees("AS"):
            self._refuse_unsupported()
            span = self.cursor.span
            word = "CLUSTER BY" if self.cursor.takes("CLUSTER BY") else self.cursor.one_of(*known, "AS")
            if word in self.spans:
                raise self.cursor.fails(f"{word} is given twice", span)
            self.spans[word] = span
            known[word](self)

    def _refuse_unsupported(self) -> None:
        for name, instead in _UNSUPPORTED.items():
            if self.cursor.sees(*name.split()):
                raise NotYetSupported(feature=f"{name} of {words_of(self.kind)}", instead=instead)

    def _comment(self) -> None:
        self.cursor.needs("=")
        self.comment = self.cursor.string("a comment in quotes")

    def _cluster(self) -> None:
        self.cursor.needs("(")
        self.cluster_by = _columns(self.cursor)

    def _lag(self) -> None:
        self.lag = read_lag(self.cursor)

    def _mode(self) -> None:
        self.mode = _choice(self.cursor, RefreshMode)

    def _initialize(self) -> None:
        self.initialize = _choice(self.cursor, Initialize)

    def _warehouse(self) -> None:
        read_warehouse(self.cursor)
        self.notices.append(WAREHOUSE_NOTICE)

    def _grants(self) -> None:
        self.notices.append(_GRANTS_NOTICE)


_READERS: Mapping[str, Callable[[_Options], None]] = {
    "COMMENT": _Options._comment,
    "CLUSTER BY": _Options._cluster,
    "COPY GRANTS": _Options._grants,
    "TARGET_LAG": _Options._lag,
    "REFRESH_MODE": _Options._mode,
    "INITIALIZE": _Options._initialize,
    "WAREHOUSE": _Options._warehouse,
    "INITIALIZATION_WAREHOUSE": _Options._warehouse,
}
_OF_ALL = ("COMMENT", "CLUSTER BY", "COPY GRANTS")


def create_view(cursor: Cursor) -> CreateView:
    """The whole statement, from CREATE on. Raises SqlCompilationError with the place, and NotYetSupported."""
    cursor.needs("CREATE")
    or_replace = cursor.takes("OR", "REPLACE")
    kind, notices = _kind(cursor)
    if_not_exists = cursor.takes("IF", "NOT", "EXISTS")
    if or_replace and if_not_exists:
        raise cursor.fails("OR REPLACE excludes IF NOT EXISTS")
    name = read_name(cursor, kind)
    columns = _named_columns(cursor) if cursor.takes("(") else ()
    if cursor.sees("CLONE"):
        raise NotYetSupported(feature="CLONE of a dynamic table", instead="Create another one with the same query.")
    options = _Options(cursor, kind, notices)
    options.read()
    if kind is KeptKind.DYNAMIC_TABLE and options.lag is None:
        raise cursor.fails("a dynamic table needs TARGET_LAG = '<number> minutes', or DOWNSTREAM")
    return CreateView(
        kind,
        name,
        text=_query(cursor),
        columns=columns,
        target_lag=options.lag,
        mode=options.mode,
        initialize=options.initialize,
        cluster_by=options.cluster_by,
        comment=options.comment,
        or_replace=or_replace,
        if_not_exists=if_not_exists,
        notices=tuple(dict.fromkeys(options.notices)),
    )


def read_lag(cursor: Cursor) -> TargetLag:
    """`= '10 minutes'` or `= DOWNSTREAM`. Raises SqlCompilationError."""
    cursor.needs("=")
    if cursor.takes("DOWNSTREAM"):
        return TargetLag()
    span = cursor.span
    text = cursor.string("a lag in quotes, as in '10 minutes', or DOWNSTREAM")
    try:
        return target_lag(text)
    except InvalidArgument as error:
        raise cursor.fails(error.facts["problem"], span) from error


def read_warehouse(cursor: Cursor) -> None:
    """`= name`, plain or in quotes."""
    cursor.needs("=")
    if cursor.text[cursor.span.start : cursor.span.start + 1] == "'":
        cursor.string("the name of a warehouse")
    else:
        cursor.name("the name of a warehouse")


def _kind(cursor: Cursor) -> tuple[KeptKind, list[str]]:
    """The kind, and a notice for a word that changes nothing."""
    if cursor.sees("SECURE"):
        raise NotYetSupported(
            feature="SECURE of a materialized view", instead="Grant rights on the bases and on the kept table."
        )
    if cursor.takes("MATERIALIZED", "VIEW"):
        return KeptKind.MATERIALIZED_VIEW, []
    notices = [_TRANSIENT_NOTICE] if cursor.takes("TRANSIENT") else []
    cursor.needs("DYNAMIC")
    if cursor.sees("ICEBERG"):
        raise NotYetSupported(feature="A dynamic Iceberg table", instead="CREATE DYNAMIC TABLE keeps a Delta table.")
    cursor.needs("TABLE")
    return KeptKind.DYNAMIC_TABLE, notices


def _named_columns(cursor: Cursor) -> tuple[str, ...]:
    """Names, each with an optional comment, up to the closing parenthesis."""
    found: list[str] = []
    while True:
        span = cursor.span
        name = cursor.name("the name of a column")
        if len(name.parts) > 1:
            raise cursor.fails("a column has a name of one part", span)
        if name.text.casefold() in {one.casefold() for one in found}:
            raise cursor.fails(f"the column {name.text} is given twice", span)
        if not any(cursor.sees(word) for word in (",", ")", "COMMENT")):
            raise cursor.fails("a column has a name and a COMMENT; its type and its rules are those of the query")
        if cursor.takes("COMMENT"):
            cursor.string("a comment in quotes")
        found.append(name.text)
        if cursor.takes(")"):
            return tuple(found)
        cursor.needs(",")


def _columns(cursor: Cursor) -> tuple[str, ...]:
    """Names of columns up to the closing parenthesis; Delta clusters by columns alone."""
    found: list[str] = []
    while True:
        span = cursor.span
        name = cursor.name("the name of a column")
        if cursor.sees("("):
            raise cursor.fails("a Delta table is clustered by columns, not by expressions", span)
        found.append(name.text)
        if cursor.takes(")"):
            return tuple(found)
        cursor.needs(",")


def _choice(cursor: Cursor, choices: type[Choice]) -> Choice:
    cursor.needs("=")
    span = cursor.span
    quoted = cursor.text[span.start : span.start + 1] == "'"
    words = [one.value.upper() for one in choices]
    if not quoted:
        return choices(cursor.one_of(*words).lower())
    text = cursor.string("a word").upper()
    if text not in words:
        raise cursor.fails(f"it is {' or '.join(words)}", span)
    return choices(text.lower())


def _query(cursor: Cursor) -> str:
    cursor.needs("AS")
    if cursor.span.start >= len(cursor.text) or not any(cursor.sees(word) for word in ("SELECT", "WITH", "(")):
        raise cursor.unexpected("SELECT")
    return cursor.text[cursor.span.start :].rstrip().rstrip(";").rstrip()
