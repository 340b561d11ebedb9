"""SQL that others may have written: statements, views, constraints of tables. Only this module calls sqlglot's parser.

Each text gives a tree or SqlNotUnderstood. This holds for texts that are nested more deeply than Python's stack, or on
which sqlglot fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import sqlglot
from sqlglot import Token, exp
from sqlglot.dialects.databricks import Databricks
from sqlglot.dialects.snowflake import Snowflake
from sqlglot.errors import SqlglotError
from sqlglot.generators.databricks import DatabricksGenerator
from sqlglot.parsers.databricks import DatabricksParser

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
_AS_WRITTEN = frozenset({"ARRAY_SIZE", "DATE_TRUNC", "GET_JSON_OBJECT", "LOG10", "LOG2", "TRUNC", "UNIX_DATE"})
_COLOURS = re.compile(r"\x1b\[\d+m")


Dialect = str | type[sqlglot.Dialect]


class SqlNotUnderstood(ValueError):
    """The reason why a text has no tree, or a tree no text, in one line."""


class _SourceTokenizer(Snowflake.Tokenizer):
    """The source system's tokens, and names in backticks, as in delta.`/path`."""

    IDENTIFIERS = ['"', "`"]  # noqa: RUF012 - sqlglot's way


class _Source(Snowflake):
    Tokenizer = _SourceTokenizer


def _unless_of_units(name: str) -> Callable[[list[Any]], exp.Expr]:
    """The builder of a call as it is written. With a third argument the first is a unit, and no column."""
    with_unit: Callable[[list[Any]], exp.Expr] = DatabricksParser.FUNCTIONS[name]
    return lambda args: with_unit(args) if len(args) > 2 else exp.Anonymous(this=name, expressions=args)


class _SparkTokenizer(Databricks.Tokenizer):
    """Spark's tokens: since Spark 4, a quote in a text may be doubled."""

    STRING_ESCAPES = ["\\", "'", '"']  # noqa: RUF012 - sqlglot's way


class _SparkParser(DatabricksParser):
    """Functions for which sqlglot would write another one, with other values, are kept as written."""

    FUNCTIONS = {  # noqa: RUF012 - sqlglot's way
        **{name: built for name, built in DatabricksParser.FUNCTIONS.items() if name not in _AS_WRITTEN},
        **{name: _unless_of_units(name) for name in ("DATEDIFF", "DATE_DIFF")},
    }


class _SparkGenerator(DatabricksGenerator):
    """Spark 4.1 has times of a day, which Databricks has not."""

    TYPE_MAPPING = {**DatabricksGenerator.TYPE_MAPPING, exp.DType.TIME: "TIME"}  # noqa: RUF012 - sqlglot's way


class _Spark(Databricks):
    Tokenizer = _SparkTokenizer
    Parser = _SparkParser
    Generator = _SparkGenerator


SPARK = _Spark  # Databricks' SQL includes Spark's own
SNOWFLAKE = "snowflake"
SOURCE = _Source  # the source system's, with names in backticks


def trees(text: str, dialect: Dialect) -> list[exp.Expression]:
    """The statements in the text. Raises SqlNotUnderstood."""
    with _in_words():
        found = [tree for tree in sqlglot.parse(text, dialect=dialect) if tree is not None]
    if not all(isinstance(tree, exp.Expression) for tree in found):
        raise SqlNotUnderstood("it is not a statement")
    return [tree for tree in found if isinstance(tree, exp.Expression)]


def tree_of(text: str, dialect: Dialect) -> exp.Expression:
    """The only statement or expression in the text. Raises SqlNotUnderstood."""
    found = trees(text, dialect)
    if len(found) != 1:
        raise SqlNotUnderstood(f"one statement is needed, not {len(found)}")
    return found[0]


def tokens(text: str, dialect: Dialect) -> tuple[Token, ...]:
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


def written(tree: exp.Expr, dialect: Dialect, *, comments: bool = True) -> str:
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
