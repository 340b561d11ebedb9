"""Functions of a query whose value depends on the time, the user or the session of its reader."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from tidemark.changes.planning.views.text import ViewText
from tidemark.errors import ViewRefused
from tidemark.sql.functions import name_of, of_the_row, word_of_the_present

__all__ = ["refused_values", "runtime_value", "word_of"]

_OF_THE_READ = frozenset(
    {
        *("current_date", "curdate", "current_timestamp", "now", "localtimestamp", "current_time", "localtime"),
        *("current_user", "user", "session_user", "current_catalog", "current_database", "current_schema"),
        *("current_timezone", "version", "input_file_name", "is_account_group_member", "is_member"),
    }
)
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
    word = word_of_the_present(node)
    return text.word(node, name_of(node)) if word is None else f"'{word}'"


def _runtime_values(tree: exp.Expr) -> Iterator[exp.Expr]:
    for node in tree.dfs():
        if word_of_the_present(node) is not None or _asks(node):
            yield node


def _asks(node: exp.Expr) -> bool:
    """Whether the call answers for its time, user or session."""
    name = name_of(node)
    if name == "unix_timestamp":
        return not node.expressions and not node.args.get("this")
    return isinstance(node, _NODES) or name in _OF_THE_READ or of_the_row(node)
