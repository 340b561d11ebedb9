"""The parsed text of a view: its tree, and the places of its parts in the text."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import Token, TokenType, exp

from tidemark.errors import ViewNotUnderstood, ViewRefused
from tidemark.sql import foreign_sql as sql_texts
from tidemark.sql.foreign_sql import SPARK, SqlNotUnderstood

__all__ = ["ViewText", "parse_view", "sql_of"]


@dataclass(frozen=True)
class ViewText:
    """The text of the view `view`, its tokens and its tree, a query."""

    view: str
    text: str
    tokens: tuple[Token, ...]
    tree: exp.Query

    def refused(self, construct: str, node: exp.Expr, *words: TokenType, instead: str = "") -> ViewRefused:
        """The error about a construct that cannot be followed, with line, column and text.

        The span is that of the last of `words` before the first part of `node` that has a span. Without such a word it
        is the span of that part. If several of `words` follow one another, the first of them counts.
        """
        start, end = self._whole(*self._span(node, words))
        before = self.text[:start]
        return ViewRefused(
            construct=construct,
            view=self.view,
            line=before.count("\n") + 1,
            column=start - (before.rfind("\n") + 1) + 1,
            fragment=" ".join(self.text[start : end + 1].split()),
            instead=instead,
        )

    def word(self, node: exp.Expr, otherwise: str) -> str:
        """The first word of `node` in the text."""
        return self.text[node.meta["start"] : node.meta["end"] + 1] if "start" in node.meta else otherwise

    def _span(self, node: exp.Expr, words: tuple[TokenType, ...]) -> tuple[int, int]:
        spans = [(part.meta["start"], part.meta["end"]) for part in node.walk() if "start" in part.meta]
        inside = [span for span in spans if span[0] < len(self.text)]
        first, last = (min(inside)[0], max(inside)[1]) if inside else (len(self.text), 0)
        found = [number for number, token in enumerate(self.tokens) if token.token_type in words]
        before = [number for number in found if self.tokens[number].start <= first]
        word = before[-1] if before else next(iter(found), None)
        if word is None:
            return (first, last) if inside else (0, min(len(self.text), 40) - 1)
        end = max(last, self.tokens[word].end)
        while word - 1 in found:
            word -= 1
        return self.tokens[word].start, end

    def _whole(self, start: int, end: int) -> tuple[int, int]:
        """The span, extended by the closing parentheses of those that it opens."""
        inside = [token for token in self.tokens if start <= token.start <= end]
        kinds = [token.token_type for token in inside]
        missing = kinds.count(TokenType.L_PAREN) - kinds.count(TokenType.R_PAREN)
        for token in self.tokens:
            if token.start > end and missing > 0 and token.token_type is TokenType.R_PAREN:
                end, missing = token.end, missing - 1
        return start, end


def parse_view(view: str, text: str) -> ViewText:
    """The stored text of a view, parsed. Raises ViewNotUnderstood."""
    try:
        tokens, trees = sql_texts.tokens(text, SPARK), sql_texts.trees(text, SPARK)
    except SqlNotUnderstood as error:
        raise ViewNotUnderstood(view=view, problem=f"it cannot be parsed: {error}") from error
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise ViewNotUnderstood(view=view, problem="it is not one query")
    return ViewText(view, text, tokens, trees[0])


def sql_of(tree: exp.Expr) -> str:
    """The text of a tree, in Spark's SQL. Raises SqlNotUnderstood if it is nested too deeply."""
    return sql_texts.written(tree, SPARK, comments=False)
