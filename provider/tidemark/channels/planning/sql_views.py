"""Mentions of the histories of a table's channels in a query: functions of the source system that Spark has not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlglot import Token, TokenType

from tidemark.errors import SqlCompilationError
from tidemark.sql.text import Cursor, Span

__all__ = ["History", "HistoryMention", "find_histories"]


class History(StrEnum):
    """The functions, by their names in capitals. Each takes the name of a table in quotes."""

    CHANNELS = "SNOWPIPE_STREAMING_CHANNEL_HISTORY"
    FILE_MIGRATIONS = "SNOWPIPE_STREAMING_FILE_MIGRATION_HISTORY"


@dataclass(frozen=True)
class HistoryMention:
    """`TABLE(SNOWPIPE_STREAMING_CHANNEL_HISTORY('db.orders'))`, or the function without TABLE( )."""

    history: History
    table: str
    span: Span


def find_histories(text: str) -> tuple[HistoryMention, ...]:
    """The mentions in the text, in its order. None in a text that cannot be taken apart: Spark says why."""
    if not any(name in text.upper() for name in History):
        return ()
    try:
        tokens = Cursor(text).tokens
    except SqlCompilationError:
        return ()
    found = (_mention(tokens, at) for at in range(len(tokens)))
    return tuple(mention for mention in found if mention is not None)


def _mention(tokens: Sequence[Token], at: int) -> HistoryMention | None:
    name = tokens[at].text.upper()
    follow = [token.text for token in tokens[at + 1 : at + 5]]
    is_string = len(follow) > 1 and tokens[at + 2].token_type is TokenType.STRING
    if name not in list(History) or not is_string or (follow[0], follow[2:3]) != ("(", [")"]):
        return None
    before = [token.text.upper() for token in tokens[max(0, at - 2) : at]]
    is_wrapped = before == ["TABLE", "("] and follow[3:] == [")"]
    first, last = (tokens[at - 2], tokens[at + 4]) if is_wrapped else (tokens[at], tokens[at + 3])
    return HistoryMention(History(name), follow[1], Span(first.start, last.end + 1))
