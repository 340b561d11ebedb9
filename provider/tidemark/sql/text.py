"""The text of a statement as tokens, read from left to right. Each error has its place in the text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType

from tidemark.errors import SqlCompilationError
from tidemark.model.foreign_json import whole_number
from tidemark.sql.foreign_sql import SqlNotUnderstood, source_tokens

__all__ = [
    "BLANK",
    "ONE_NAME",
    "Cursor",
    "Span",
    "SqlName",
    "compilation_error",
    "exchanged",
    "is_name",
    "name_in",
    "tokens_of",
]

RESERVED = frozenset(
    """
    ALTER AS CREATE DROP FALSE FROM IN INTO LIKE NOT NULL ON OR SELECT SET TABLE TRUE USING VALUES WHERE WITH
    """.split()  # noqa: SIM905 - a list of words
)
BLANK = r"(?>\s|--[^\n]*\n|/\*.*?\*/)*"  # before a statement; with re.DOTALL. Each part is read in one way only
ONE_NAME = r"(?:`[^`]+`|\"[^\"]+\"|[^\s`\"])+"  # of a table, up to the next white space
_WORD = re.compile(r"[^\W\d][\w$]*")
_MOST_SHOWN = 10_000  # SHOW … LIMIT at most, as in the source system
_STRINGS = (TokenType.STRING, TokenType.RAW_STRING)


@dataclass(frozen=True)
class Span:
    """A piece of the text, [start, end)."""

    start: int
    end: int


@dataclass(frozen=True)
class SqlName:
    """A name of up to three parts, without quotes, and its span in the text."""

    parts: tuple[str, ...]
    span: Span

    @property
    def text(self) -> str:
        """The parts joined by dots, which is a stream's name in the control store (R12)."""
        return ".".join(self.parts)


def compilation_error(text: str, span: Span, problem: str) -> SqlCompilationError:
    """The error that shows the line of the text, and a caret under the span."""
    begin = text.rfind("\n", 0, span.start) + 1
    end = text.find("\n", begin)
    line = text[begin:] if end < 0 else text[begin:end]
    column = span.start - begin
    length = max(1, min(span.end, begin + len(line)) - span.start)
    blank = re.sub(r"[^\t]", " ", line[:column])
    return SqlCompilationError(
        problem=problem,
        line=text.count("\n", 0, span.start) + 1,
        column=column + 1,
        marked=f"\n  {line}\n  {blank}{'^' * length}",
        sql=text,
    )


def exchanged(text: str, pieces: Mapping[Span, str]) -> str:
    """The text with other words in each of these pieces of it."""
    for span in sorted(pieces, key=lambda one: one.start, reverse=True):
        text = text[: span.start] + pieces[span] + text[span.end :]
    return text


def tokens_of(text: str) -> list[Token]:
    """The tokens without comments. Raises SqlCompilationError if a quote or a comment has no end."""
    try:
        return source_tokens(text)
    except SqlNotUnderstood as error:
        open_from = next(place for place in range(len(text), -1, -1) if _ends_well(text[:place]))
        problem = "the quote or comment that begins here has no end"
        raise compilation_error(text, Span(open_from, open_from + 1), problem) from error


def name_in(text: str, quoted: str, span: Span) -> SqlName:
    """The name in a string, as in SYSTEM$STREAM_HAS_DATA('db.schema.s')."""
    problem = f"{quoted!r} is not the name of a stream"
    try:
        cursor = Cursor(quoted)
        name = cursor.name("a name")
        cursor.end()
    except SqlCompilationError as error:
        raise compilation_error(text, span, problem) from error
    return SqlName(name.parts, span)


class Cursor:
    """The tokens of one statement, and the position of the next one. Words are compared ignoring case."""

    def __init__(self, text: str, tokens: Sequence[Token] | None = None, at: int = 0) -> None:
        self.text = text
        self.tokens = tokens_of(text) if tokens is None else tokens
        self.at = at

    def sees(self, *words: str) -> bool:
        """Whether these words or signs come next."""
        coming = self.tokens[self.at : self.at + len(words)]
        return len(coming) == len(words) and all(map(_is, coming, words))

    def takes(self, *words: str) -> bool:
        """Whether these words come next; if so, they are read."""
        if not self.sees(*words):
            return False
        self.at += len(words)
        return True

    def needs(self, *words: str) -> None:
        """Reads these words. Raises SqlCompilationError at the first one that is missing."""
        for word in words:
            if not self.takes(word):
                raise self.unexpected(word)

    def one_of(self, *choices: str) -> str:
        """The one of these words, or sequences of words, that comes next; it is read."""
        for choice in choices:
            if self.takes(*choice.split()):
                return choice
        raise self.unexpected(" or ".join(choices))

    def name(self, what: str) -> SqlName:
        """A name of one to three parts, each an unquoted word or in double quotes or backticks."""
        parts = [self._part(what)]
        while len(parts) < 3 and self.takes("."):
            parts.append(self._part(what))
        first, last = parts[0], parts[-1]
        return SqlName(tuple(part.text for part in parts), Span(first.start, last.end + 1))

    def string(self, what: str) -> str:
        """A string in single quotes."""
        if self._coming is None or self._coming.token_type not in _STRINGS:
            raise self.unexpected(what)
        return self._read().text

    def whole_number(self, what: str) -> int:
        """A number without a fraction."""
        found = None if self._coming is None else whole_number(self._coming.text)
        if found is None:
            raise self.unexpected(what)
        self._read()
        return found

    def flag(self) -> bool:
        """`= TRUE` or `= FALSE`."""
        self.needs("=")
        return self.one_of("TRUE", "FALSE") == "TRUE"

    def page(self) -> tuple[str | None, int | None, str | None]:
        """STARTS WITH, LIMIT and the name behind FROM, at the end of a SHOW; None for a part that it lacks."""
        starts_with = self.string("a beginning in quotes") if self.takes("STARTS", "WITH") else None
        if not self.takes("LIMIT"):
            return starts_with, None, None
        span = self.span
        limit = self.whole_number("a number of rows")
        if not 0 < limit <= _MOST_SHOWN:
            raise self.fails(f"LIMIT goes from 1 to {_MOST_SHOWN}", span)
        return starts_with, limit, self.string("a name in quotes") if self.takes("FROM") else None

    def inside(self) -> Span:
        """The text up to the closing parenthesis, which is read, too."""
        start, depth = self.span.start, 1
        while self._coming is not None:
            token = self._read()
            depth += {"(": 1, ")": -1}.get(token.text, 0) if token.token_type not in _STRINGS else 0
            if depth == 0:
                return Span(start, token.start)
        raise self.unexpected(")")

    def end(self) -> None:
        """Nothing, or SqlCompilationError if more than semicolons is left."""
        while self.takes(";"):
            pass
        if self._coming is not None:
            raise self.fails(f"syntax error: unexpected {self._coming.text!r}; one statement at a time")

    @property
    def span(self) -> Span:
        """The span of the next token; the end of the text if there is none."""
        token = self._coming
        return Span(len(self.text), len(self.text) + 1) if token is None else Span(token.start, token.end + 1)

    def unexpected(self, wanted: str) -> SqlCompilationError:
        """A syntax error at the next token."""
        found = "the end of the text" if self._coming is None else repr(self._coming.text)
        return self.fails(f"syntax error: unexpected {found}, expected {wanted}")

    def fails(self, problem: str, span: Span | None = None) -> SqlCompilationError:
        """An error at `span`, or at the next token."""
        return compilation_error(self.text, span or self.span, problem)

    @property
    def _coming(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def _read(self) -> Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def _part(self, what: str) -> Token:
        token = self._coming
        if token is None or not is_name(token):
            raise self.unexpected(what)
        return self._read()


def is_name(token: Token) -> bool:
    """Whether the token may be part of a name."""
    if token.token_type is TokenType.IDENTIFIER:
        return bool(token.text)
    is_word = token.token_type not in _STRINGS and _WORD.fullmatch(token.text) is not None
    return is_word and token.text.upper() not in RESERVED


def _is(token: Token, word: str) -> bool:
    quoted = token.token_type in (TokenType.IDENTIFIER, *_STRINGS)
    return not quoted and token.text.upper() == word


def _ends_well(text: str) -> bool:
    try:
        source_tokens(text)
    except SqlNotUnderstood:
        return False
    return True
