"""One statement text as a value; None where it is nothing to do with streams, so that Spark may have it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, tzinfo
from types import MappingProxyType

from tidemark.errors import SqlCompilationError
from tidemark.sql.text import Cursor
from tidemark.streams.planning.stream_sql.constants import Constant, Constants, NotConstant
from tidemark.streams.planning.stream_sql.create import NO_TAGS, read_create, read_source
from tidemark.streams.planning.stream_sql.queries import read_query
from tidemark.streams.planning.stream_sql.statements import (
    AlterStream,
    DescribeStream,
    DropStream,
    RefreshExternalTable,
    SetVariable,
    ShowStreams,
    StreamStatement,
)

__all__ = ["parse_stream_sql"]

NO_VARIABLES: Mapping[str, Constant] = MappingProxyType({})


def parse_stream_sql(
    text: str, *, now: datetime, zone: tzinfo = UTC, variables: Mapping[str, Constant] = NO_VARIABLES
) -> StreamStatement | None:
    """The statement, if it is one about streams or holds CHANGES, AT|BEFORE or a system function of streams.

    `now` is what CURRENT_TIMESTAMP means; `zone`, that of times with local zone which name none;
    `variables`: what SET has set. Raises SqlCompilationError with the place in the text.
    """
    constants = Constants(now, zone, variables)
    begins = _Beginning(text)
    for forms, read in _READERS:
        if any(begins.with_words(*form.split()) for form in forms):
            return read(Cursor(text), constants)
    try:
        cursor = Cursor(text)
    except SqlCompilationError:
        return None  # Spark reads texts by other rules, and says itself what it cannot read
    for words in _TRANSACTION_WORDS:
        if cursor.takes(*words.split()) and (cursor.sees(";") or cursor.span.start >= len(text)):
            cursor.at = 0
            raise cursor.fails(_TRANSACTION)
        cursor.at = 0
    return _set(cursor, constants) or read_query(cursor, constants)


def _set(cursor: Cursor, constants: Constants) -> SetVariable | None:
    """SET name = constant; None for a setting of Spark's, whose names have dots and whose values are no constants."""
    word = cursor.tokens[1].text if len(cursor.tokens) > 3 else ""
    if not (word.isidentifier() and cursor.takes("SET", word.upper(), "=")):
        cursor.at = 0
        return None
    try:
        value = constants.selected(cursor.text[cursor.span.start :].rstrip().rstrip(";"))
    except NotConstant:
        cursor.at = 0
        return None
    return SetVariable(word.upper(), value)


class _Beginning:
    """The first words of a text, also of one whose rest cannot be read."""

    def __init__(self, text: str) -> None:
        self._cursor = self._readable(text)

    @staticmethod
    def _readable(text: str) -> Cursor | None:
        for end in (len(text), text.find("'"), text.find('"'), text.find("`")):
            try:
                return Cursor(text[:end]) if end > 0 else Cursor("")
            except SqlCompilationError:
                continue
        return None

    def with_words(self, *words: str) -> bool:
        return self._cursor is not None and self._cursor.sees(*words)


_TRANSACTION_WORDS = (
    "BEGIN",
    "BEGIN TRANSACTION",
    "BEGIN WORK",
    "START TRANSACTION",
    "COMMIT",
    "COMMIT WORK",
    "ROLLBACK",
    "ROLLBACK WORK",
)
_TASK = (
    "tasks are DAGs here. StreamHasDataSensor waits until a stream has data, stream_data_asset then starts a DAG, and"
    " StreamSQLOperator runs the statement"
)
_TRANSACTION = (
    "a transaction is a block here, so that it always ends. In Python, use `with lake.transaction() as tx:`. Its end"
    " commits the statements of tx.sql(…), and an exception rolls back. In a DAG, use the task group stream_transaction"
)


def _alter(cursor: Cursor, constants: Constants) -> AlterStream:
    cursor.needs("ALTER", "STREAM")
    if_exists = cursor.takes("IF", "EXISTS")
    name = cursor.name("the name of the stream")
    action = cursor.one_of("SET", "UNSET")
    if cursor.sees("TAG"):
        raise cursor.fails(NO_TAGS)
    if any(cursor.sees(word) for word in ("APPEND_ONLY", "INSERT_ONLY", "SHOW_INITIAL_ROWS")):
        raise cursor.fails("type and source of a stream cannot be changed; only its COMMENT can (R4)")
    cursor.needs("COMMENT")
    comment: str | None = None
    if action == "SET":
        cursor.needs("=")
        comment = cursor.string("a comment in quotes")
    cursor.end()
    return AlterStream(name, comment, if_exists)


def _drop(cursor: Cursor, constants: Constants) -> DropStream:
    cursor.needs("DROP", "STREAM")
    if_exists = cursor.takes("IF", "EXISTS")
    name = cursor.name("the name of the stream")
    cursor.end()
    return DropStream(name, if_exists)


def _refresh(cursor: Cursor, constants: Constants) -> RefreshExternalTable:
    cursor.needs("ALTER", "EXTERNAL", "TABLE")
    if_exists = cursor.takes("IF", "EXISTS")
    name = read_source(cursor)
    cursor.needs("REFRESH")
    if not (cursor.sees(";") or cursor.span.start >= len(cursor.text)):
        raise cursor.fails("a refresh looks at the whole directory: a part of it cannot be named")
    cursor.end()
    return RefreshExternalTable(name, if_exists)


def _undrop(cursor: Cursor, constants: Constants) -> StreamStatement:
    raise cursor.fails("a dropped stream cannot be brought back: its place is gone (R92)")


def _task(cursor: Cursor, constants: Constants) -> StreamStatement:
    raise cursor.fails(_TASK)


def _describe(cursor: Cursor, constants: Constants) -> DescribeStream:
    cursor.one_of("DESCRIBE", "DESC")
    cursor.needs("STREAM")
    name = cursor.name("the name of the stream")
    cursor.end()
    return DescribeStream(name)


def _show(cursor: Cursor, constants: Constants) -> ShowStreams:
    cursor.needs("SHOW")
    terse = cursor.takes("TERSE")
    cursor.needs("STREAMS")
    like = cursor.string("a pattern in quotes") if cursor.takes("LIKE") else None
    database, schema = _scope(cursor) if cursor.takes("IN") else (None, None)
    starts_with, limit, from_name = cursor.page()
    cursor.end()
    return ShowStreams(terse, like, database, schema, starts_with, limit, from_name)


def _scope(cursor: Cursor) -> tuple[str | None, str | None]:
    """(database, schema) after IN; None stands for all."""
    if cursor.takes("ACCOUNT"):
        return None, None
    word = next((word for word in ("DATABASE", "SCHEMA") if cursor.takes(word)), "SCHEMA")
    ends = cursor.span.start >= len(cursor.text) or any(cursor.sees(w) for w in (";", "STARTS", "LIMIT"))
    if ends:
        return None, None
    name = cursor.name(f"the name of a {word.lower()}")
    if word == "DATABASE":
        return name.parts[-1], None
    return (name.parts[-2] if len(name.parts) > 1 else None), name.parts[-1]


_READERS: tuple[tuple[tuple[str, ...], Callable[[Cursor, Constants], StreamStatement]], ...] = (
    (("CREATE STREAM", "CREATE OR REPLACE STREAM", "CREATE OR ALTER STREAM"), read_create),
    (("ALTER STREAM",), _alter),
    (("DROP STREAM",), _drop),
    (("ALTER EXTERNAL TABLE",), _refresh),
    (("UNDROP STREAM",), _undrop),
    (("DESCRIBE STREAM", "DESC STREAM"), _describe),
    (("CREATE TASK", "CREATE OR REPLACE TASK", "ALTER TASK", "EXECUTE TASK"), _task),
    (("SHOW STREAMS", "SHOW TERSE STREAMS"), _show),
)
