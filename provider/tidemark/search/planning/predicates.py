"""The predicate of a WHERE as a term. A part that is not understood leaves no file out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from sqlglot import exp

from tidemark.model.table_log import Metadata
from tidemark.search.model.paths import SearchColumn, ValueKind
from tidemark.search.model.terms import AllOf, AnyOf, Anything, Holds, IsIn, Like, Term, Within
from tidemark.search.planning.columns import column_named, is_column
from tidemark.search.planning.literals import NotConstant, value_of
from tidemark.sql.foreign_sql import SPARK, SqlNotUnderstood, tree_of, written

__all__ = ["column_in", "term_of", "term_of_tree"]

_DANGEROUS = ("\\", '"', "${")  # texts whose meaning depends on settings of the session
_NO_BOUNDS = (ValueKind.TIMESTAMP, ValueKind.BINARY)


def term_of(where: str, metadata: Metadata, *, zone: tzinfo | None = None, names: Sequence[str] = ()) -> Term:
    """The term of the text of a predicate. `names`: of the table, by which columns may be qualified. `zone`: that of
    the session.
    """
    try:
        tree = tree_of(f"SELECT 1 FROM t WHERE {where}\n", SPARK)
    except SqlNotUnderstood:
        return Anything(where)
    clause = tree.args.get("where") if isinstance(tree, exp.Select) else None
    alone = isinstance(tree, exp.Select) and not any(
        value for name, value in tree.args.items() if name not in ("expressions", "from_", "where", "kind")
    )
    if clause is None or not alone:
        return Anything(where)
    return term_of_tree(clause.this, where, metadata, zone=zone, names=names)


def term_of_tree(
    tree: exp.Expr, text: str, metadata: Metadata, *, zone: tzinfo | None = None, names: Sequence[str] = ()
) -> Term:
    """The same of a tree that was parsed from `text`."""
    if any(sign in text for sign in _DANGEROUS):
        return Anything(text)
    return _Reader(metadata, zone, frozenset(name.lower() for name in names)).term(tree)


def column_in(node: exp.Expr, metadata: Metadata, names: Sequence[str]) -> SearchColumn | None:
    """The column of the table that a node names; None for another node."""
    return _Reader(metadata, None, frozenset(name.lower() for name in names)).column(node)


@dataclass(frozen=True)
class _Reader:
    metadata: Metadata
    zone: tzinfo | None
    names: frozenset[str]

    def term(self, node: exp.Expr) -> Term:
        """The term of a node. A node that is negated, or has parts that are not known here, is anything."""
        try:
            return self._term(node)
        except (NotConstant, ValueError):
            return Anything(_said(node))

    def _term(self, node: exp.Expr) -> Term:
        if isinstance(node, exp.Paren):
            return self.term(node.this)
        if isinstance(node, exp.And):
            return AllOf(tuple(self.term(part) for part in _flat(node, exp.And)))
        if isinstance(node, exp.Or):
            return AnyOf(tuple(self.term(part) for part in _flat(node, exp.Or)))
        reader = next((read for kinds, read in _READERS if isinstance(node, kinds)), None)
        allowed = ("this", "expression", "expressions", "low", "high")
        if reader is None or any(value for name, value in node.args.items() if name not in allowed):
            return Anything(_said(node))
        return reader(self, node)

    def equal(self, node: exp.Expr) -> Term:
        """A column = constant, in either order."""
        for column, constant in ((node.this, node.expression), (node.expression, node.this)):
            found = self.column(column)
            if found is not None and not found.is_array:
                return IsIn(found, (value_of(found.kind, constant, self.zone),))
        raise NotConstant(node)

    def is_in(self, node: exp.Expr) -> Term:
        """A column IN (constants)."""
        column = self._scalar(node.this)
        constants = [one for one in node.expressions if not isinstance(one, exp.Null)]
        if not node.expressions:
            raise NotConstant(node)
        return IsIn(column, self._values(column, constants))

    def between(self, node: exp.Expr) -> Term:
        """A column BETWEEN constant AND constant."""
        column = self._scalar(node.this, bounds=True)
        low, high = (value_of(column.kind, node.args[name], self.zone) for name in ("low", "high"))
        return Within(column, low, high)

    def compared(self, node: exp.Expr) -> Term:
        """A column < constant, and its like, in either order."""
        turned = self.column(node.this) is None
        column = self._scalar(node.expression if turned else node.this, bounds=True)
        value = value_of(column.kind, node.this if turned else node.expression, self.zone)
        with_bound = isinstance(node, exp.GTE | exp.LTE)
        if isinstance(node, exp.GT | exp.GTE) is not turned:
            return Within(column, least=value, with_least=with_bound)
        return Within(column, most=value, with_most=with_bound)

    def like(self, node: exp.Expr) -> Term:
        """A column LIKE pattern."""
        column = self._text(node.this)
        return Like(column, value_of(column.kind, node.expression, self.zone))

    def part(self, node: exp.Expr) -> Term:
        """The functions contains, startswith and endswith."""
        column = self._text(node.this)
        value = value_of(column.kind, node.expression, self.zone)
        if any(sign in value for sign in "%_"):
            raise NotConstant(node)
        before = "" if isinstance(node, exp.StartsWith) else "%"
        behind = "" if isinstance(node, exp.EndsWith) else "%"
        return Like(column, f"{before}{value}{behind}")

    def array_contains(self, node: exp.Expr) -> Term:
        """The function array_contains, of a column and a constant."""
        column = self._array(node.this)
        return Holds(column, self._values(column, [node.expression]))

    def anonymous(self, node: exp.Expr) -> Term:
        """The function arrays_overlap, of a column and an array of constants, in either order."""
        arguments = node.expressions
        if str(node.this).lower() != "arrays_overlap" or len(arguments) != 2:
            raise NotConstant(node)
        first, second = arguments if self.column(arguments[0]) is not None else reversed(arguments)
        if not isinstance(second, exp.Array):
            raise NotConstant(node)
        column = self._array(first)
        return Holds(column, self._values(column, second.expressions))

    def _values(self, column: SearchColumn, nodes: Sequence[exp.Expr]) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(value_of(column.kind, node, self.zone) for node in nodes))

    def _scalar(self, node: exp.Expr, *, bounds: bool = False) -> SearchColumn:
        column = self.column(node)
        if column is None or column.is_array or (bounds and column.kind in _NO_BOUNDS):
            raise NotConstant(node)
        return column

    def _text(self, node: exp.Expr) -> SearchColumn:
        column = self._scalar(node)
        if column.kind is not ValueKind.TEXT:
            raise NotConstant(node)
        return column

    def _array(self, node: exp.Expr) -> SearchColumn:
        column = self.column(node)
        if column is None or not column.is_array:
            raise NotConstant(node)
        return column

    def column(self, node: exp.Expr) -> SearchColumn | None:
        """The column that a node names; None for another node, and for names that may mean two columns."""
        if isinstance(node, exp.Paren):
            return self.column(node.this)
        parts = _parts(node)
        if not parts:
            return None
        qualifiers = next((n for n, part in enumerate(parts) if part.lower() not in self.names), len(parts) - 1)
        ways = (parts[n:] for n in range(min(qualifiers, len(parts) - 1), -1, -1))
        meant = [names for names in ways if is_column(self.metadata, names)]
        return column_named(self.metadata, meant[0]) if len(meant) == 1 else None


def _parts(node: exp.Expr) -> list[str]:
    """The names of a column and of the fields in it; empty for another node."""
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        before = _parts(node.this)
        return [*before, node.expression.name] if before else []
    if isinstance(node, exp.Column) and all(isinstance(part, exp.Identifier) for part in node.parts):
        return [part.name for part in node.parts]
    return []


def _flat(node: exp.Expr, kind: type[exp.Connector]) -> Iterator[exp.Expr]:
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, kind):
            waiting += [one.expression, one.this]
        else:
            yield one


def _said(node: exp.Expr) -> str:
    try:
        return written(node, SPARK, comments=False)
    except SqlNotUnderstood:
        return type(node).__name__


_READERS: tuple[tuple[tuple[type[exp.Expr], ...], Callable[[_Reader, Any], Term]], ...] = (
    ((exp.EQ, exp.NullSafeEQ), _Reader.equal),
    ((exp.In,), _Reader.is_in),
    ((exp.Between,), _Reader.between),
    ((exp.GT, exp.GTE, exp.LT, exp.LTE), _Reader.compared),
    ((exp.Like,), _Reader.like),
    ((exp.Contains, exp.StartsWith, exp.EndsWith), _Reader.part),
    ((exp.ArrayContains,), _Reader.array_contains),
    ((exp.Anonymous,), _Reader.anonymous),
)
