"""Statements of loads, stages, file formats and pipes, as text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import Token

from tidemark.errors import NotYetSupported, SqlCompilationError
from tidemark.pipes.planning.sql_copy import copy_into
from tidemark.pipes.planning.sql_objects import alter, create
from tidemark.pipes.planning.sql_options import literal, name_of_text, object_kind, stage
from tidemark.pipes.planning.statements import (
    Describe,
    DropObject,
    ListStage,
    ObjectKind,
    PipeForceResume,
    PipeStatement,
    PipeStatus,
    ShowObjects,
)
from tidemark.sql.text import BLANK, Cursor

__all__ = ["parse_pipe_sql"]

_OBJECT = r"(?:STAGE|PIPE|FILE\s+FORMAT)"
_STATUS, _RESUME = "SYSTEM$PIPE_STATUS", "SYSTEM$PIPE_FORCE_RESUME"
_MODIFIERS = r"(?:OR\s+(?:REPLACE|ALTER)\s+)?(?:(?:TEMP|TEMPORARY|VOLATILE)\s+)?"


def _begins(pattern: str) -> re.Pattern[str]:
    return re.compile(BLANK + pattern, re.DOTALL | re.IGNORECASE)


_COPY = _begins(r"COPY\s+INTO\b")
_CREATE = _begins(rf"CREATE\s+{_MODIFIERS}{_OBJECT}\b")
_ALTER = _begins(rf"ALTER\s+{_OBJECT}\b")
_DROP = _begins(rf"DROP\s+{_OBJECT}\b")
_SHOW = _begins(r"SHOW\s+(?:STAGES|PIPES|FILE\s+FORMATS)\b")
_DESCRIBE = _begins(rf"DESC(?:RIBE)?\s+{_OBJECT}\s+[\w\"`]")
_LIST = _begins(r"(?:LIST|LS)\s+['@]")
_CALL = _begins(rf"SELECT\s+(?:{re.escape(_STATUS)}|{re.escape(_RESUME)})\s*\(")
_MOVED_FILES = _begins(r"(PUT|GET|REMOVE|RM)\s+(?:'|@|file:)")
_VALIDATIONS = ("VALIDATE", "VALIDATE_PIPE_LOAD")
_SHOWN = {"STAGES": ObjectKind.STAGE, "PIPES": ObjectKind.PIPE, "FILE FORMATS": ObjectKind.FILE_FORMAT}


def parse_pipe_sql(text: str) -> PipeStatement | None:
    """The statement, if it is one of loads, stages, file formats or pipes.

    Raises SqlCompilationError with the place in the text, and NotYetSupported for statements of the source system that
    have no counterpart.
    """
    _refuse(text)
    for pattern, read in _READERS:
        if pattern.match(text):
            return read(Cursor(text))
    return None


def _refuse(text: str) -> None:
    """Raises NotYetSupported for statements that move files, and for validations of loads that are over."""
    moves = _MOVED_FILES.match(text)
    if moves is not None:
        raise NotYetSupported(
            feature=f"{moves[1].upper()} of files", instead="A stage is a directory: move its files by its own tools."
        )
    if "VALIDATE" not in text.upper():
        return
    try:
        tokens = Cursor(text).tokens
    except SqlCompilationError:
        return
    for at, token in enumerate(tokens):
        if token.text.upper() in _VALIDATIONS and _texts(tokens[at - 2 : at]) == ["TABLE", "("]:
            raise NotYetSupported(
                feature=f"TABLE({token.text.upper()}(…))",
                instead="COPY INTO … VALIDATION_MODE = RETURN_ALL_ERRORS shows the errors; COPY_HISTORY has the first.",
            )


def _texts(tokens: Sequence[Token]) -> list[str]:
    return [token.text.upper() for token in tokens]


def _copy(cursor: Cursor) -> PipeStatement:
    return copy_into(cursor)


def _create(cursor: Cursor) -> PipeStatement:
    return create(cursor)


def _alter(cursor: Cursor) -> PipeStatement:
    return alter(cursor)


def _drop(cursor: Cursor) -> DropObject:
    cursor.needs("DROP")
    kind = object_kind(cursor)
    if_exists = cursor.takes("IF", "EXISTS")
    name = cursor.name(f"the name of a {kind.lower()}").text
    cursor.end()
    return DropObject(kind, name, if_exists)


def _show(cursor: Cursor) -> ShowObjects:
    cursor.needs("SHOW")
    kind = _SHOWN[cursor.one_of(*_SHOWN)]
    like = literal(cursor, "a pattern in quotes") if cursor.takes("LIKE") else None
    found: dict[str, str] = {}
    if cursor.takes("IN") and not cursor.takes("ACCOUNT"):
        at = "database" if cursor.takes("DATABASE") else "schema"
        cursor.takes("SCHEMA")
        found[at] = cursor.name(f"the name of a {at}, or ACCOUNT").text
    cursor.end()
    return ShowObjects(kind, like, **found)


def _describe(cursor: Cursor) -> Describe:
    cursor.one_of("DESCRIBE", "DESC")
    kind = object_kind(cursor)
    name = cursor.name(f"the name of a {kind.lower()}").text
    cursor.end()
    return Describe(kind, name)


def _list(cursor: Cursor) -> ListStage:
    cursor.one_of("LIST", "LS")
    source = stage(cursor)
    pattern = None
    if cursor.takes("PATTERN"):
        cursor.needs("=")
        at = cursor.span
        pattern = literal(cursor, "a regular expression in quotes")
        try:
            re.compile(pattern)
        except re.error as error:
            raise cursor.fails(f"PATTERN is not a regular expression: {error}", at) from error
    cursor.end()
    return ListStage(source, pattern)


def _call(cursor: Cursor) -> PipeStatus | PipeForceResume:
    cursor.needs("SELECT")
    function = cursor.one_of(_STATUS, _RESUME)
    cursor.needs("(")
    if not cursor.text[cursor.span.start :].startswith(("'", "$$")):
        raise cursor.unexpected("the name of a pipe in quotes")
    name = name_of_text(cursor, "the name of a pipe in quotes")
    stale_too = False
    if function == _RESUME and cursor.takes(","):
        at = cursor.span
        flags = literal(cursor, "'STALENESS_CHECK_OVERRIDE'").upper().replace(" ", "").split(",")
        if set(flags) - {"STALENESS_CHECK_OVERRIDE", "OWNERSHIP_TRANSFER_CHECK_OVERRIDE"}:
            raise cursor.fails("it may be 'STALENESS_CHECK_OVERRIDE'", at)
        stale_too = "STALENESS_CHECK_OVERRIDE" in flags
    cursor.needs(")")
    cursor.end()
    return PipeStatus(name) if function == _STATUS else PipeForceResume(name, stale_too)


_READERS = (
    (_COPY, _copy),
    (_CREATE, _create),
    (_ALTER, _alter),
    (_DROP, _drop),
    (_SHOW, _show),
    (_DESCRIBE, _describe),
    (_LIST, _list),
    (_CALL, _call),
)
