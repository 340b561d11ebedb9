"""Parts of statements on files: strings, options `NAME = value`, file formats, names and locations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import Token, TokenType

from tidemark.errors import InvalidArgument, NotYetSupported, SqlCompilationError
from tidemark.pipes.model.formats import FileFormat, FileType
from tidemark.pipes.planning.formats import file_format, file_type, value_of
from tidemark.pipes.planning.statements import FormatRef, ObjectKind, StageSource, UriSource
from tidemark.sql.text import Cursor, Span, is_name

__all__ = [
    "GivenOption",
    "format_of",
    "literal",
    "location",
    "name_of_text",
    "object_kind",
    "options_until",
    "read_format",
    "stage",
]

_STRINGS = (TokenType.STRING, TokenType.RAW_STRING)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|([0-7]{3})|(.))|''", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "b": "\b", "0": "\0"}
_PART = r'(?:"[^"]+"|`[^`]+`|[^\W\d][\w$]*)'
_STAGE = re.compile(rf"@({_PART}(?:\.{_PART}){{0,2}})(/[^\s();,]*)?")
_QUOTED_STAGE = re.compile(rf"@({_PART}(?:\.{_PART}){{0,2}})(/.*)?", re.DOTALL)
_OWN_STAGES = {
    "~": ("The user stage @~", "Make a stage on a directory: CREATE STAGE name URL = '…'."),
    "%": ("The table stage @%table", "Make a stage on a directory: CREATE STAGE name URL = '…'."),
}
_COMMENT = re.compile(r"--|//|/\*|'")


@dataclass(frozen=True)
class GivenOption:
    """An option as written. `value`: bool, int, text or tuple of texts; None for `( )` in brackets with options."""

    name: str
    value: Any
    span: Span
    value_span: Span


def literal(cursor: Cursor, what: str) -> str:
    r"""A string with the escapes of the source system: \t, \\, \', \x7c, \174 and two quotes for one."""
    token = _coming(cursor)
    if token is None or token.token_type not in _STRINGS:
        raise cursor.unexpected(what)
    raw = cursor.text[token.start : token.end + 1]
    cursor.at += 1
    if not (raw.startswith("'") and raw.endswith("'")):
        return token.text  # $$…$$
    return _ESCAPE.sub(_character, raw[1:-1])


def name_of_text(cursor: Cursor, what: str) -> str:
    """A name of one to three parts, plain or in a string."""
    token = _coming(cursor)
    if token is None or token.token_type not in _STRINGS:
        return cursor.name(what).text
    span = cursor.span
    try:
        inner = Cursor(literal(cursor, what))
        name = inner.name(what)
        inner.end()
    except SqlCompilationError as error:
        raise cursor.fails(f"{token.text!r} is not {what}", span) from error
    return name.text


def object_kind(cursor: Cursor) -> ObjectKind:
    """STAGE, PIPE or FILE FORMAT, whose two words are one token."""
    token = _coming(cursor)
    words = " ".join(token.text.upper().split()) if token is not None else ""
    if words not in list(ObjectKind):
        return ObjectKind(cursor.one_of(*ObjectKind))
    cursor.at += 1
    return ObjectKind(words)


def options_until(cursor: Cursor, *ends: str, given: Mapping[str, GivenOption] | None = None) -> dict[str, GivenOption]:
    """The options up to one of these words, or the end. Raises SqlCompilationError if one is given twice."""
    found = dict(given or {})
    while _coming(cursor) is not None and not any(cursor.sees(end) for end in (*ends, ")", ";")):
        option = _option(cursor)
        if option.name in found:
            raise cursor.fails(f"{option.name} is given twice", option.span)
        found[option.name] = option
        cursor.takes(",")
    return found


def read_format(cursor: Cursor) -> FormatRef:
    """The format behind `FILE_FORMAT =`: ( … ) or the name of a format."""
    if not cursor.takes("("):
        return FormatRef(name=name_of_text(cursor, "the name of a file format"))
    options = options_until(cursor)
    cursor.needs(")")
    named = options.pop("FORMAT_NAME", None)
    if named is None:
        return FormatRef(format=format_of(cursor, options))
    if options:
        raise cursor.fails("FORMAT_NAME excludes TYPE and its options", next(iter(options.values())).span)
    return FormatRef(name=str(named.value))


def format_of(cursor: Cursor, options: dict[str, GivenOption]) -> FileFormat:
    """The format of these options. Raises SqlCompilationError at the wrong one."""
    typed = options.pop("TYPE", None)
    at = None if typed is None else typed.value_span
    try:
        kind = FileType.CSV if typed is None else file_type(typed.value)
        for one in options.values():
            at = one.span
            value_of(kind, one.name, one.value)
        return file_format(kind, {one.name: one.value for one in options.values()})
    except InvalidArgument as error:
        raise cursor.fails(str(error), at) from error


def location(cursor: Cursor) -> StageSource | UriSource:
    """@stage/path, or a location in quotes, which may be a stage with blanks in its path."""
    token = _coming(cursor)
    if token is None or token.token_type not in _STRINGS:
        return stage(cursor)
    span, text = cursor.span, literal(cursor, "a location")
    if text.startswith("@"):
        return _stage_of(cursor, _QUOTED_STAGE.fullmatch(text), text, span)
    if "://" not in text and not text.startswith("/"):
        raise cursor.fails("a location is @stage/path, or a URI or a path from the root in quotes", span)
    return UriSource(text)


def stage(cursor: Cursor) -> StageSource:
    """@stage/path; in single quotes if the path has blanks."""
    token = _coming(cursor)
    if token is not None and token.token_type in _STRINGS:
        found = location(cursor)
        if isinstance(found, UriSource):
            raise cursor.fails("a stage is needed, as in @stage/path", Span(token.start, token.end + 1))
        return found
    if not cursor.sees("@"):
        raise cursor.unexpected("@stage/path, or a location in quotes")
    start = cursor.span.start
    match = _STAGE.match(cursor.text, start)
    end = match.end() if match else start + 2
    source = _stage_of(cursor, match, cursor.text[start : start + 2], Span(start, end))
    if _COMMENT.search(cursor.text, start, end):
        raise cursor.fails("put the location into single quotes: it has a quote or a comment", Span(start, end))
    while cursor.at < len(cursor.tokens) and cursor.tokens[cursor.at].start < end:
        cursor.at += 1
    return source


def _stage_of(cursor: Cursor, match: re.Match[str] | None, text: str, span: Span) -> StageSource:
    if match is None and text[1:2] in _OWN_STAGES:
        feature, instead = _OWN_STAGES[text[1:2]]
        raise NotYetSupported(feature=feature, instead=instead)
    if match is None:
        raise cursor.fails("a stage is written @name, @schema.name or @database.schema.name", span)
    name = Cursor(match[1]).name("the name of a stage").text
    return StageSource(name, (match[2] or "").lstrip("/"))


def _option(cursor: Cursor) -> GivenOption:
    span = cursor.span
    token = _coming(cursor)
    if token is None or not is_name(token):
        raise cursor.unexpected("an option, as in NAME = value")
    name = token.text.upper()
    cursor.at += 1
    cursor.needs("=")
    value_span = cursor.span
    if name == "FILE_FORMAT":
        return GivenOption(name, read_format(cursor), span, value_span)
    if name == "FORMAT_NAME":
        return GivenOption(name, name_of_text(cursor, "the name of a file format"), span, value_span)
    return GivenOption(name, _value(cursor), span, value_span)


def _value(cursor: Cursor) -> Any:
    token = _coming(cursor)
    if token is None:
        raise cursor.unexpected("a value")
    if token.token_type in _STRINGS:
        return literal(cursor, "a text")
    if cursor.sees("("):
        return _list(cursor)
    if token.token_type is TokenType.NUMBER:
        return cursor.whole_number("a whole number")
    if not (is_name(token) or token.text.upper() in ("TRUE", "FALSE", "NULL")):
        raise cursor.unexpected("a value")
    cursor.at += 1
    if token.text.upper() in ("TRUE", "FALSE"):
        return token.text.upper() == "TRUE"
    return token.text + ("%" if cursor.takes("%") else "")


def _list(cursor: Cursor) -> tuple[str, ...] | None:
    """Texts in parentheses; None for other content, such as that of CREDENTIALS, which is skipped."""
    start = cursor.at
    cursor.needs("(")
    texts: list[str] = []
    while not cursor.takes(")"):
        token = _coming(cursor)
        if token is None or token.token_type not in _STRINGS:
            cursor.at = start + 1
            cursor.inside()
            return None
        texts.append(literal(cursor, "a text"))
        if not cursor.sees(")"):
            cursor.needs(",")
    return tuple(texts)


def _coming(cursor: Cursor) -> Token | None:
    return cursor.tokens[cursor.at] if cursor.at < len(cursor.tokens) else None


def _character(found: re.Match[str]) -> str:
    hexadecimal, unicode, octal, letter = found.groups()
    if hexadecimal or unicode:
        return chr(int(hexadecimal or unicode, 16))
    if octal:
        return chr(int(octal, 8))
    return "'" if letter is None else _LETTERS.get(letter, letter)
