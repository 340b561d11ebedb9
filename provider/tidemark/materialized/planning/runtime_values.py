"""Functions of a query whose value depends on the time, the user or the session of its reader."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from tidemark.changes.planning.views.text import ViewText
from tidemark.errors import ViewRefused
from tidemark.sql.functions import name_of, of_the_row

__all__ = ["refused_values", "runtime_value", "word_of"]

_OF_THE_READ = frozenset(
    {
        *("current_date", "curdate", "current_timestamp", "now", "localtimestamp", "current_time", "localtime"),
        *("current_user", "user", "session_user", "current_catalog", "current_database", "current_schema"),
        *("current_timezone", "version", "input_file_name", "is_account_group_member", "is_member"),
    }
)
_WORDS = ("now", "today", "yesterday", "tomorrow")
_TIMES = (exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ)
_NODES = (
    *(exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime, exp.CurrentUser, exp.Localtimestamp, exp.Localtime),
    *(exp.CurrentCatalog, exp.CurrentDatabase, exp.CurrentSchema, exp.SessionUser, exp.CurrentTimezone, exp.Version),
)


def runtime_value(text: ViewText) -> exp.Expr | None:
    """The first part of the text whose value depends on more than rows; None without one."""
    return next(_runtime_values(text.tree), None)


def refused_values(text: ViewText, node: exp.Expr) -> ViewRefused:
    """The error about such a part, with its place."""
    return text.refused(
        f"the run-time value {word_of(text, node)!r}",
        node,
        instead="Remove it from the query, and compare with it in the queries that read the view.",
    )


def word_of(text: ViewText, node: exp.Expr) -> str:
    """The part in the words of the text."""
    return text.word(node, name_of(node))


def _runtime_values(tree: exp.Expr) -> Iterator[exp.Expr]:
    for node in tree.dfs():
        is_word = isinstance(node, exp.Cast) and node.this.is_string and node.to.this in _TIMES
        if (is_word and str(node.this.this).strip().lower() in _WORDS) or _asks(node):
            yield node


def _asks(node: exp.Expr) -> bool:
    """Whether the call answers for its time, user or session."""
    name = name_of(node)
    if name == "unix_timestamp":
        return not node.expressions and not node.args.get("this")
    return isinstance(node, _NODES) or name in _OF_THE_READ or of_the_row(node)
