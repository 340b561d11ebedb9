"""SQL that others may have written: statements, views, constraints of tables. Only this module calls sqlglot's parser.

Each text gives a tree or SqlNotUnderstood. This holds for texts that are nested more deeply than Python's stack, or on
which sqlglot fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import sqlglot
from sqlglot import Token, exp
from sqlglot.dialects.snowflake import Snowflake
from sqlglot.errors import SqlglotError

__all__ = [
    "SNOWFLAKE",
    "SOURCE",
    "SPARK",
    "SqlNotUnderstood",
    "renames_columns",
    "source_tokens",
    "tokens",
    "tree_of",
    "trees",
    "written",
]

_STUMBLES = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError)
_COLOURS = re.compile(r"\x1b\[\d+m")


class SqlNotUnderstood(ValueError):
    """The reason why a text has no tree, or a tree no text, in one line."""


class _SourceTokenizer(Snowflake.Tokenizer):
    """The source system's tokens, and names in backticks, as in delta.`/path`."""

    IDENTIFIERS = ['"', "`"]  # noqa: RUF012 - sqlglot's way


class _Source(Snowflake):
    Tokenizer = _SourceTokenizer


SPARK = "databricks"  # includes Spark's own SQL
SNOWFLAKE = "snowflake"
SOURCE = _Source  # the source system's, with names in backticks


def trees(text: str, dialect: str | type[Snowflake]) -> list[exp.Expression]:
    """The statements in the text. Raises SqlNotUnderstood."""
    with _in_words():
        found = [tree for tree in sqlglot.parse(text, dialect=dialect) if tree is not None]
    if not all(isinstance(tree, exp.Expression) for tree in found):
        raise SqlNotUnderstood("it is not a statement")
    return [tree for tree in found if isinstance(tree, exp.Expression)]


def tree_of(text: str, dialect: str | type[Snowflake]) -> exp.Expression:
    """The only statement or expression in the text. Raises SqlNotUnderstood."""
    found = trees(text, dialect)
    if len(found) != 1:
        raise SqlNotUnderstood(f"one statement is needed, not {len(found)}")
    return found[0]


def tokens(text: str, dialect: str) -> tuple[Token, ...]:
    """The tokens of the text, without comments. Raises SqlNotUnderstood."""
    with _in_words():
        return tuple(sqlglot.tokenize(text, read=dialect))


def source_tokens(text: str) -> list[Token]:
    """The tokens of a text in the SQL of the source system. Raises SqlNotUnderstood."""
    with _in_words():
        return list(_SourceTokenizer().tokenize(text))


def renames_columns(source: exp.Expr) -> bool:
    """Whether the alias of a table lists columns, as in `t AS a(x, y)`: then its names are not those of the table."""
    alias = source.args.get("alias")
    return isinstance(alias, exp.TableAlias) and bool(alias.args.get("columns"))


def written(tree: exp.Expr, dialect: str, *, comments: bool = True) -> str:
    """The text of a tree. Raises SqlNotUnderstood."""
    with _in_words():
        return tree.sql(dialect=dialect, comments=comments)


@contextmanager
def _in_words() -> Iterator[None]:
    try:
        yield
    except RecursionError as error:
        raise SqlNotUnderstood("it is nested too deeply") from error
    except (SqlglotError, *_STUMBLES) as error:
        said = _COLOURS.sub("", str(error)).splitlines()
        raise SqlNotUnderstood(said[0] if said else type(error).__name__) from error
