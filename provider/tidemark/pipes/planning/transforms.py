"""Transformations of COPY INTO: the items of SELECT, as Spark SQL with a check for each conversion that may fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from sqlglot import Token, exp

from tidemark.errors import SqlCompilationError
from tidemark.pipes.model.formats import FileType
from tidemark.pipes.planning.transform_functions import OWN
from tidemark.pipes.planning.transform_values import Check, Over, Refused, Rewriter
from tidemark.sql.foreign_sql import SNOWFLAKE, SPARK, SqlNotUnderstood, tree_of, written
from tidemark.sql.text import Cursor, Span, compilation_error, exchanged

__all__ = ["Check", "Item", "Over", "highest_position", "over_of", "select_items"]

_OVER = {FileType.CSV: Over.FIELDS, FileType.JSON: Over.VARIANT, FileType.XML: Over.VARIANT}


@dataclass(frozen=True)
class Item:
    """One item. `sql`: its value; a conversion that fails gives NULL, and a check is true. `text`: as written."""

    sql: str
    text: str
    checks: tuple[Check, ...] = ()
    positions: frozenset[int] = field(default_factory=frozenset)


def over_of(type: FileType) -> Over:
    """The way in which rows of files of this type reach a transformation."""
    return _OVER.get(type, Over.COLUMNS)


def select_items(
    select: str, alias: str | None = None, over: Over | str = Over.FIELDS, within: tuple[str, Span] | None = None
) -> tuple[Item, ...]:
    """The items of a transformation over files.

    `alias`: the only name that may qualify `$1`; None: any. `over`: how rows reach it. `within`: the statement, and the
    place of the items in it, for errors. Raises SqlCompilationError, and NotYetSupported for parts that Spark has not.
    """
    text, start = (select, 0) if within is None else (within[0], within[1].start)
    spans = list(_split(Cursor(select)))
    offset = start + (len(text[start:]) - len(text[start:].lstrip()) if within is not None else 0)
    return tuple(_item(select, span, alias, Over(over), (text, offset)) for span in spans)


def highest_position(items: Sequence[Item]) -> int:
    """The greatest n of `$n` in the items; 0 if there is none."""
    return max((position for item in items for position in item.positions), default=0)


def _item(select: str, span: Span, alias: str | None, over: Over, within: tuple[str, int]) -> Item:
    text = select[span.start : span.end]
    place = Span(within[1] + span.start, within[1] + span.end)
    try:
        tree = tree_of(f"SELECT {_as_written(text)}", SNOWFLAKE)
    except (SqlNotUnderstood, SqlCompilationError) as error:
        raise compilation_error(within[0], place, f"the item {text!r} is not an expression: {error}") from error
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1:
        raise compilation_error(within[0], place, f"the item {text!r} is not an expression")
    more = [key for key, value in tree.args.items() if value and key not in ("expressions", "kind")]
    if more:
        problem = f"{more[0].rstrip('_').upper()} is not allowed in a transformation, which has items only"
        raise compilation_error(within[0], place, problem)
    rewriter = Rewriter(over, alias)
    try:
        value = rewriter.item(tree.expressions[0].unalias())
        return Item(written(value, SPARK, comments=False), text, tuple(rewriter.checks), frozenset(rewriter.positions))
    except Refused as refused:
        raise compilation_error(within[0], place, f"{refused} (in the item {text!r})") from refused
    except SqlNotUnderstood as error:
        raise compilation_error(within[0], place, f"the item {text!r} has no form in Spark: {error}") from error


def _as_written(text: str) -> str:
    """The item with its own functions under names that sqlglot does not know."""
    tokens = Cursor(text).tokens
    calls = (one for one, next_ in pairwise(tokens) if next_.text == "(")
    found = (one for one in calls if one.text.upper() in OWN)
    return exchanged(text, {Span(one.start, one.end + 1): f"TM_{one.text.upper()}" for one in found})


def _split(cursor: Cursor) -> Iterator[Span]:
    """The text between commas that are in no parentheses."""
    depth, first = 0, 0
    tokens = cursor.tokens
    for at, token in enumerate(tokens):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token.text, 0)
        if token.text == "," and depth == 0:
            yield _span(cursor, tokens, first, at)
            first = at + 1
    yield _span(cursor, tokens, first, len(tokens))


def _span(cursor: Cursor, tokens: Sequence[Token], first: int, end: int) -> Span:
    if first >= end:
        cursor.at = min(end, len(tokens))
        raise cursor.unexpected("an item, as in $1")
    return Span(tokens[first].start, tokens[end - 1].end + 1)
