"""Mentions of change streams in a query that Spark does not know: the catalog views, and READ_ in either dialect."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlglot import Token, TokenType

from tidemark.errors import SqlCompilationError
from tidemark.sql.text import Cursor, Span, exchanged

__all__ = [
    "CATALOG_VIEWS",
    "CatalogView",
    "ChangeStreamMention",
    "ReadFunction",
    "find_mentions",
    "may_mention",
    "with_mentions",
]

CATALOG_VIEWS = ("CHANGE_STREAMS", "CHANGE_STREAM_TABLES", "CHANGE_STREAM_COLUMNS", "CHANGE_STREAM_OPTIONS")
READ, READ_JSON = "READ_", "READ_JSON_"
_SCHEMA_OF_READ_JSON = "SPANNER"


@dataclass(frozen=True)
class CatalogView:
    """`INFORMATION_SCHEMA.CHANGE_…`; `name` in capitals."""

    name: str
    span: Span


@dataclass(frozen=True)
class ReadFunction:
    """`READ_s(` or `"spanner"."read_json_s"(`: the function's name, without its parenthesis.

    `stream`: the name of the change stream in small letters.
    """

    stream: str
    as_json: bool
    span: Span


ChangeStreamMention = CatalogView | ReadFunction


def may_mention(text: str) -> bool:
    """Whether it is worth asking which change streams there are."""
    return "CHANGE_STREAM" in text.upper() or READ in text.upper()


def find_mentions(text: str, streams: Collection[str]) -> tuple[ChangeStreamMention, ...]:
    """The mentions of change streams in the text, in its order. `streams`: the names of those that exist.

    A function of another name may be the user's own. None in a text that cannot be taken apart: Spark says why.
    """
    try:
        cursor = Cursor(text)
    except SqlCompilationError:
        return ()
    known = {name.casefold() for name in streams}
    found: list[ChangeStreamMention] = []
    for at, token in enumerate(cursor.tokens):
        before = cursor.tokens[at - 2] if at > 1 and cursor.tokens[at - 1].text == "." else None
        opens = at + 1 < len(cursor.tokens) and cursor.tokens[at + 1].text == "("
        mention = _read(token, before, known) if opens else _view(token, before)
        if mention is not None:
            found.append(mention)
    return tuple(found)


def with_mentions(text: str, replacements: Mapping[ChangeStreamMention, str]) -> str:
    """The text with each mention exchanged for what stands for it."""
    return exchanged(text, {mention.span: words for mention, words in replacements.items()})


def _view(token: Token, before: Token | None) -> CatalogView | None:
    name = token.text.upper()
    if before is None or before.text.upper() != "INFORMATION_SCHEMA" or name not in CATALOG_VIEWS:
        return None
    return CatalogView(name, Span(before.start, token.end + 1))


def _read(token: Token, before: Token | None, known: Collection[str]) -> ReadFunction | None:
    name = token.text.casefold()
    if token.token_type is TokenType.STRING or not name.startswith(READ.lower()):
        return None
    in_schema = before is not None and before.text.upper() == _SCHEMA_OF_READ_JSON
    if before is not None and not in_schema:
        return None
    span = Span(before.start if before is not None else token.start, token.end + 1)
    for prefix in (READ_JSON, READ):
        stream = name.removeprefix(prefix.lower())
        if stream != name and stream in known:
            return ReadFunction(stream, prefix == READ_JSON, span)
    return None
