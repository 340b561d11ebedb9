"""The constraints in a Delta table's metadata as texts, and whether a text always has the same value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlglot import exp

from tidemark.sql.foreign_sql import SPARK, SqlNotUnderstood, tree_of, written
from tidemark.sql.functions import at_one_time, name_of, of_the_row, word_of_the_present

__all__ = ["CheckText", "check_texts", "text_at"]

PREFIX = "delta.constraints."
_OF_THE_SESSION = frozenset(
    {
        *("current_user", "session_user", "user", "current_catalog", "current_database", "current_schema"),
        "current_timezone",
    }
)
_MAY_ASK = re.compile(
    r"now|today|tomorrow|yesterday|current_|curdate|date\(\)|local|unix|rand|uuid|uni|shuffle|user", re.I
)


@dataclass(frozen=True)
class CheckText:
    """A CHECK constraint: its name and its expression, with a fixed time in place of the present.

    `names`: the columns that it may name, in lower case; None if unknown.
    """

    name: str
    sql: str
    names: frozenset[str] | None


def check_texts(configuration: Mapping[str, str], at: datetime) -> tuple[CheckText, ...]:
    """The table's CHECK constraints by name, without random ones."""
    found = sorted((key[len(PREFIX) :], sql) for key, sql in configuration.items() if key.startswith(PREFIX))
    texts = ((name, text_at(sql, at)) for name, sql in found)
    return tuple(CheckText(name, *text) for name, text in texts if text is not None)


def text_at(sql: str, at: datetime) -> tuple[str, frozenset[str] | None] | None:
    """An expression as of `at`, and the names in it; None if each evaluation gives another value.

    An expression without a time is kept. A text 'now', 'today', 'tomorrow' or 'yesterday' without a cast counts, too:
    beside a time Spark reads it as the present.
    """
    try:
        tree = tree_of(sql, SPARK)
        return _at(tree, sql, at)
    except (SqlNotUnderstood, RecursionError):
        return None if _MAY_ASK.search(sql) else (sql, None)


def _at(tree: exp.Expression, sql: str, at: datetime) -> tuple[str, frozenset[str] | None] | None:
    if any(of_the_row(node) or name_of(node) in _OF_THE_SESSION for node in tree.walk()):
        return None
    names = frozenset(str(node.this).lower() for node in tree.find_all(exp.Identifier))
    pinned = at_one_time(tree.copy(), at)
    if any(word_of_the_present(node) is not None for node in pinned.walk()):
        return None
    return (sql if pinned == tree else written(pinned, SPARK)), names
