"""The parts of a view's row id: scans of base tables, arms without one, and groups, each with a number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from tidemark.changes.planning.views.sources import block_of, sources_of
from tidemark.errors import ViewNotUnderstood
from tidemark.model.views import BASE, ViewQuery
from tidemark.sql.foreign_sql import SPARK, SqlNotUnderstood, tree_of

__all__ = ["Parts", "is_grouped", "is_linear", "is_optional", "numbered"]


@dataclass(frozen=True)
class Parts:
    """The tree of a view's query, and the numbers of its parts in the order of the text.

    `numbers`: each table, each SELECT without FROM and each SELECT that groups, by the identity of its node. `bases`:
    the base table of each number that is a scan.
    """

    tree: exp.Select
    numbers: dict[int, int]
    bases: dict[int, int]

    def number(self, node: exp.Expr) -> int:
        """The number of a part."""
        return self.numbers[id(node)]

    def inside(self, node: exp.Expr) -> list[int]:
        """The numbers of all parts in `node`, itself included."""
        return [self.numbers[id(part)] for part in _walk(node) if id(part) in self.numbers]


def numbered(query: ViewQuery) -> Parts:
    """The query's tree, new at each call, so that it may be changed. Raises ViewNotUnderstood."""
    try:
        tree = tree_of(query.text, SPARK)
    except SqlNotUnderstood as error:
        raise ViewNotUnderstood(view=query.name, problem=f"it cannot be parsed: {error}") from error
    assert isinstance(tree, exp.Select)
    numbers: dict[int, int] = {}
    bases: dict[int, int] = {}
    for node in _walk(tree):
        if isinstance(node, exp.Table) and node.name.startswith(BASE):
            bases[len(numbers)] = int(node.name.removeprefix(BASE))
        elif not isinstance(node, exp.Select) or (node.args.get("from_") and not is_grouped(node)):
            continue
        numbers[id(node)] = len(numbers)
    return Parts(tree, numbers, bases)


def is_grouped(query: exp.Expr) -> bool:
    """Whether the query combines several rows of its sources into one."""
    if not isinstance(query, exp.Select):
        return False
    if query.args.get("group") or query.args.get("distinct") or query.args.get("having"):
        return True
    return any(
        isinstance(node, exp.AggFunc)
        for column in query.expressions
        for node in column.walk(prune=lambda part: isinstance(part, exp.Query))
    )


def is_optional(join: exp.Join) -> bool:
    """Whether it is an outer, semi or anti join, in which a row of one side needs no partner."""
    return bool(join.side) or join.kind.upper() in ("SEMI", "ANTI")


def is_linear(tree: exp.Expr) -> bool:
    """Whether the changes of the result are sums over the changes of each scan (R74)."""
    joins = list(tree.find_all(exp.Join))
    return not any(map(is_optional, joins)) and not any(map(is_grouped, tree.find_all(exp.Select)))


def _walk(query: exp.Expr) -> Iterator[exp.Expr]:
    """Queries and tables in the order of the text."""
    found = block_of(query)
    yield found
    if isinstance(found, exp.SetOperation):
        yield from _walk(found.this)
        yield from _walk(found.expression)
    elif isinstance(found, exp.Select):
        for source in sources_of(found):
            yield from _walk(source)
