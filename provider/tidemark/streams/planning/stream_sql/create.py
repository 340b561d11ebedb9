"""CREATE STREAM (R4–R11)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tidemark.model.streams import StreamMode
from tidemark.sql.text import Cursor, Span, SqlName
from tidemark.streams.planning.stream_sql.constants import Constants
from tidemark.streams.planning.stream_sql.points import read_point, sees_point
from tidemark.streams.planning.stream_sql.statements import CloneStream, CreateStream, ObjectKind, SqlPoint

__all__ = ["NO_TAGS", "read_create", "read_source"]

NO_TAGS = "tags are not kept here; say it in the COMMENT"
COPY_GRANTS = "COPY GRANTS was ignored: who may use a stream is decided by Airflow and by the control store's grants."
INSERT_ONLY = (
    "Streams of type INSERT_ONLY can only be created on external tables or Iceberg tables with an external catalog"
    " integration."
)


@dataclass
class _Head:
    """The part before the source."""

    name: SqlName
    or_replace: bool
    or_alter: bool
    if_not_exists: bool
    notices: tuple[str, ...]


class _Options:
    """The options, in any order, each at most once."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._spans: dict[str, Span] = {}
        self.flags: dict[str, bool] = {}
        self.comment: str | None = None
        self.point: SqlPoint | None = None
        self.notices: tuple[str, ...] = ()

    def read(self, constants: Constants) -> _Options:
        cursor = self._cursor
        while not (cursor.sees(";") or cursor.span.start >= len(cursor.text)):
            span = cursor.span
            if sees_point(cursor, "AT", "BEFORE"):
                self._once("AT | BEFORE", span)
                self.point = read_point(cursor, constants)
            else:
                word = cursor.one_of(*_READERS)
                self._once(word, span)
                _READERS[word](self, word)
        cursor.end()
        return self

    def span(self, word: str) -> Span:
        return self._spans[word]

    def _once(self, word: str, span: Span) -> None:
        if word in self._spans:
            raise self._cursor.fails(f"{word} is given twice", span)
        self._spans[word] = span

    def _flag(self, word: str) -> None:
        self.flags[word] = self._cursor.flag()

    def _comment(self, word: str) -> None:
        self._cursor.needs("=")
        self.comment = self._cursor.string("a comment in quotes")

    def _grants(self, word: str) -> None:
        self.notices = (COPY_GRANTS,)

    def _tags(self, word: str) -> None:
        raise self._cursor.fails(NO_TAGS, self._spans[word])


_READERS: Mapping[str, Callable[[_Options, str], None]] = {
    "APPEND_ONLY": _Options._flag,
    "INSERT_ONLY": _Options._flag,
    "SHOW_INITIAL_ROWS": _Options._flag,
    "COMMENT": _Options._comment,
    "COPY GRANTS": _Options._grants,
    "WITH TAG": _Options._tags,
    "TAG": _Options._tags,
}


def read_create(cursor: Cursor, constants: Constants) -> CreateStream | CloneStream:
    """Read the whole statement, from CREATE on. Raises SqlCompilationError."""
    head = _head(cursor)
    if cursor.takes("CLONE"):
        return _clone(cursor, head, constants)
    if cursor.takes("COPY", "GRANTS"):
        head.notices = (COPY_GRANTS,)
    cursor.needs("ON")
    kind = ObjectKind(cursor.one_of(*ObjectKind))
    source = read_source(cursor)
    options = _Options(cursor).read(constants)
    return CreateStream(
        name=head.name,
        source=source,
        kind=kind,
        mode=_mode(cursor, kind, options),
        point=options.point,
        show_initial_rows=options.flags.get("SHOW_INITIAL_ROWS", False),
        or_replace=head.or_replace,
        or_alter=head.or_alter,
        if_not_exists=head.if_not_exists,
        comment=options.comment,
        notices=tuple(dict.fromkeys(head.notices + options.notices)),
    )


def _head(cursor: Cursor) -> _Head:
    cursor.needs("CREATE")
    or_replace, or_alter = cursor.takes("OR", "REPLACE"), cursor.takes("OR", "ALTER")
    cursor.needs("STREAM")
    span = cursor.span
    if_not_exists = cursor.takes("IF", "NOT", "EXISTS")
    if if_not_exists and (or_replace or or_alter):
        other = "REPLACE" if or_replace else "ALTER"
        raise cursor.fails(f"OR {other} and IF NOT EXISTS contradict each other", span)
    return _Head(cursor.name("the name of the stream"), or_replace, or_alter, if_not_exists, ())


def _clone(cursor: Cursor, head: _Head, constants: Constants) -> CloneStream:
    if head.or_alter:
        raise cursor.fails("CREATE OR ALTER STREAM does not clone")
    source = cursor.name("the stream to clone")
    point = read_point(cursor, constants) if sees_point(cursor, "AT", "BEFORE") else None
    if cursor.takes("COPY", "GRANTS"):
        head.notices = (COPY_GRANTS,)
    cursor.end()
    return CloneStream(head.name, source, point, head.or_replace, head.if_not_exists, head.notices)


def read_source(cursor: Cursor) -> SqlName:
    """A name, a path in quotes, or a stage's name behind an @."""
    span = cursor.span
    if cursor.text[span.start : span.start + 1] == "'":
        return SqlName(("delta", cursor.string("a path")), span)
    cursor.takes("@")
    return cursor.name("the source of the stream")


def _mode(cursor: Cursor, kind: ObjectKind, options: _Options) -> StreamMode:
    """The mode, if the kind of source has it (R5, R6, C1, C2)."""
    append, insert = options.flags.get("APPEND_ONLY", False), options.flags.get("INSERT_ONLY", False)
    if append and insert:
        raise cursor.fails("APPEND_ONLY and INSERT_ONLY contradict each other", options.span("INSERT_ONLY"))
    if insert and kind is not ObjectKind.EXTERNAL_TABLE:
        raise cursor.fails(INSERT_ONLY, options.span("INSERT_ONLY"))
    if append and kind in _NO_APPEND_ONLY:
        raise cursor.fails(_NO_APPEND_ONLY[kind], options.span("APPEND_ONLY"))
    if kind is ObjectKind.EXTERNAL_TABLE and not insert:
        raise cursor.fails("Streams on external tables must set INSERT_ONLY = TRUE.", Span(0, 6))
    if insert:
        return StreamMode.INSERT_ONLY
    return StreamMode.APPEND_ONLY if append else StreamMode.STANDARD


_NO_APPEND_ONLY: Mapping[ObjectKind, str] = {
    ObjectKind.STAGE: "Streams on directories cannot have APPEND_ONLY set to true.",
    ObjectKind.DYNAMIC_TABLE: "Change tracking of type APPEND_ONLY is not supported on dynamic tables.",
    ObjectKind.EXTERNAL_TABLE: "Streams on external tables must set INSERT_ONLY = TRUE.",
}
