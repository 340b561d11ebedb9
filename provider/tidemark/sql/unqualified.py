"""Columns without the names of their tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlglot import Token, TokenType

from tidemark.sql.foreign_sql import SPARK, tokens

__all__ = ["without_qualifiers"]


def without_qualifiers(text: str, qualifiers: Collection[Sequence[str]]) -> str:
    """An expression of Spark's SQL with `a.b.c` in place of `t.a.b.c`, for each qualifier t in front of a name. Raises
    SqlNotUnderstood.
    """
    found = tokens(text, SPARK)
    known = sorted((tuple(part.lower() for part in one) for one in qualifiers if one), key=len, reverse=True)
    cuts: list[tuple[int, int]] = []
    at = 0
    while at < len(found):
        behind_a_dot = at > 0 and found[at - 1].token_type is TokenType.DOT
        length = 0 if behind_a_dot else next((2 * len(one) for one in known if _begins(found, at, one)), 0)
        if length:
            cuts.append((found[at].start, found[at + length].start))
        at += max(1, length)
    for start, end in reversed(cuts):
        text = text[:start] + text[end:]
    return text


def _begins(found: Sequence[Token], at: int, parts: Sequence[str]) -> bool:
    """Whether the parts begin at that token, each with a dot behind it, and a name behind the last."""
    names, dots = found[at : at + 2 * len(parts) : 2], found[at + 1 : at + 2 * len(parts) : 2]
    same = [token.text.lower() for token in names if token.token_type is not TokenType.STRING]
    return (
        len(found) > at + 2 * len(parts)
        and same == list(parts)
        and all(token.token_type is TokenType.DOT for token in dots)
    )
