"""Queries that read one table, and the parts of them by which files are chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo

from sqlglot import exp

from tidemark.model.foreign_json import whole_number
from tidemark.model.table_log import Metadata
from tidemark.search.model.paths import SearchColumn
from tidemark.search.model.terms import Term
from tidemark.search.planning.ordering import FirstRows
from tidemark.search.planning.predicates import column_in, term_of_tree
from tidemark.sql.foreign_sql import SPARK, SqlNotUnderstood, renames_columns, tree_of
from tidemark.sql.statements import TableMention

__all__ = ["SearchedQuery", "searched_query"]

_MOST_PARTS = 2  # of a qualified column: the alias of a table and a name
_HIDDEN = "_metadata"  # the hidden column of files and rows, which the pruned table has not


@dataclass(frozen=True)
class SearchedQuery:
    """A query over one table with a WHERE, or with ORDER BY and LIMIT."""

    text: str
    tree: exp.Select
    names: tuple[str, ...]

    def term(self, metadata: Metadata, zone: tzinfo | None) -> Term | None:
        """The term of its WHERE; None if it has none."""
        where = self.tree.args.get("where")
        if where is None:
            return None
        return term_of_tree(where.this, self.text, metadata, zone=zone, names=self.names)

    def first_rows(self, metadata: Metadata) -> FirstRows | None:
        """Its first rows by a column, if it has nothing but ORDER BY and LIMIT beside the columns it shows."""
        order, limit = self.tree.args.get("order"), self.tree.args.get("limit")
        others = (
            "where",
            "group",
            "having",
            "qualify",
            "distinct",
            "windows",
            "laterals",
            "joins",
            "sample",
            "sort",
            "cluster",
        )
        if order is None or limit is None or any(self.tree.args.get(name) for name in others) or _computes(self.tree):
            return None
        ordered = order.expressions[0]
        column = column_in(ordered.this, metadata, self.names)
        count = _counted(limit.expression)
        offset = self.tree.args.get("offset")
        skipped = 0 if offset is None else _counted(offset.expression)
        if column is None or column.is_array or count is None or skipped is None:
            return None
        if any(self._hides(one, column, metadata) for one in self.tree.expressions):
            return None
        descending = bool(ordered.args.get("desc"))
        nulls_first = ordered.args.get("nulls_first")
        return FirstRows(column, count + skipped, descending, not descending if nulls_first is None else nulls_first)

    def _hides(self, shown: exp.Expr, column: SearchColumn, metadata: Metadata) -> bool:
        """Whether the answer may have another column of the name: one under an alias, or a field of a struct. Spark
        orders by that one first.
        """
        if isinstance(shown, exp.Column) and isinstance(shown.this, exp.Star):
            return shown.table.lower() not in (name.lower() for name in self.names)
        if shown.output_name.lower() != column.parts[0].lower():
            return False
        if isinstance(shown, exp.Column) and len(shown.parts) == 1:
            return False
        meant = None if isinstance(shown, exp.Alias) else column_in(shown, metadata, self.names)
        return meant is None or len(meant.parts) > 1


def searched_query(text: str, mentions: Sequence[TableMention]) -> SearchedQuery | None:
    """The query, if it reads one table at its newest version, once, and nothing else."""
    if len(mentions) != 1:
        return None
    try:
        tree = tree_of(text, SPARK)
    except SqlNotUnderstood:
        return None
    if not isinstance(tree, exp.Select) or len(list(tree.find_all(exp.Select, exp.SetOperation))) != 1:
        return None
    source = tree.args.get("from_")
    table = None if source is None else source.this
    plain = isinstance(table, exp.Table) and not any(
        value for name, value in table.args.items() if name not in ("this", "db", "catalog", "alias")
    )
    if not plain or any(tree.args.get(name) for name in ("joins", "laterals", "with_", "sample", "pivots")):
        return None
    if table is not None and renames_columns(table):
        return None
    if any(len(column.parts) > _MOST_PARTS and column.args.get("db") for column in tree.find_all(exp.Column)):
        return None  # qualified by more than an alias, which the pruned table has not
    if any(part.name.lower() == _HIDDEN for column in tree.find_all(exp.Column) for part in column.parts[:_MOST_PARTS]):
        return None
    assert table is not None
    alias = str(table.alias) or mentions[0].parts[-1]
    return SearchedQuery(text, tree, (alias,))


def _computes(tree: exp.Select) -> bool:
    """Whether the answer has more than columns, so that its rows may be others than those of the table."""
    shown = (one.this if isinstance(one, exp.Alias) else one for one in tree.expressions)
    return not all(isinstance(one, exp.Column | exp.Star) for one in shown)


def _counted(node: exp.Expr | None) -> int | None:
    return whole_number(str(node.this)) if isinstance(node, exp.Literal) and not node.is_string else None
