"""The columns of other scans that a changed row fixes, so that only its partners are read.

Equalities of columns in ON, USING and WHERE make classes. In a class with a column of the changed scan, all columns
must equal that column. A UNION ALL has its own classes in each arm, since an equality of one arm may not hold in
another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from tidemark.changes.planning.views.parts import Parts, is_grouped, is_optional, numbered
from tidemark.changes.planning.views.sources import block_of, joins_of, sources_in, sources_of
from tidemark.model.views import ViewQuery

__all__ = ["KeyLink", "key_links"]

_Node = tuple[int, str]  # a table or a query (the identity of its node), and a column of it in lower case


@dataclass(frozen=True)
class KeyLink:
    """An equality: in every row of the changed scan's term, its column `changed` equals `column` of `scan`."""

    changed: str
    scan: int
    column: str


def key_links(query: ViewQuery, delta: int, columns: Sequence[Sequence[str]]) -> tuple[KeyLink, ...]:
    """The links of the term of the scan `delta`. `columns`: the columns of each base table."""
    parts = numbered(query)
    classes = _Classes(parts, columns)
    classes.of_query(parts.tree)
    (start,) = [node for node in parts.tree.find_all(exp.Table) if parts.numbers.get(id(node)) == delta]
    scans = {id(node): parts.number(node) for node in parts.tree.find_all(exp.Table)}
    found = {
        KeyLink(column, scans[reference], other)
        for column in classes.columns_of(start)
        for reference, other in classes.reached((id(start), column))
        if reference in scans and scans[reference] != delta
    }
    return tuple(sorted(found, key=lambda link: (link.scan, link.column, link.changed)))


class _Classes:
    """Classes of equal columns, within blocks and between a block and its sources."""

    def __init__(self, parts: Parts, columns: Sequence[Sequence[str]]) -> None:
        self.parts, self.columns = parts, columns
        self.equal: dict[_Node, set[_Node]] = defaultdict(set)
        self.up: dict[_Node, set[_Node]] = defaultdict(set)  # from a column of a union's arm to that of the union
        self.down: dict[_Node, set[_Node]] = defaultdict(set)
        self.shown: dict[int, list[str]] = {}

    def columns_of(self, source: exp.Expr) -> list[str]:
        """The columns of a source for the block that reads it."""
        if isinstance(source, exp.Table):
            return [name.lower() for name in self.columns[self.parts.bases[self.parts.number(source)]]]
        return self.shown[id(block_of(source))]

    def reached(self, start: _Node) -> set[_Node]:
        """All columns that equal `start` in its rows. They are found outwards from arms of unions, then inwards, but
        not into other arms of the same union.
        """
        outwards = self._closed({start})
        while further := {above for node in outwards for above in self.up[node]} - outwards:
            outwards = self._closed(outwards | further)
        left = {above[0] for node in outwards for above in self.up[node]}
        inwards = outwards
        while further := {b for node in inwards if node[0] not in left for b in self.down[node]} - inwards:
            inwards = self._closed(inwards | further)
        return inwards

    def of_query(self, query: exp.Expr) -> list[str]:
        """The columns of a query, whose equalities are recorded."""
        found = block_of(query)
        if isinstance(found, exp.SetOperation):
            arms = [(block_of(arm), self.of_query(arm)) for arm in (found.this, found.expression)]
            names = arms[0][1]
            for arm, own in arms:
                for name, inner in zip(names, own, strict=False):
                    self.up[id(arm), inner].add((id(found), name))
                    self.down[id(found), name].add((id(arm), inner))
        else:
            assert isinstance(found, exp.Select)
            names = self._of_select(found)
        self.shown[id(found)] = names
        return names

    def _of_select(self, query: exp.Select) -> list[str]:
        sources = list(sources_of(query))
        for source in sources:
            if isinstance(source, exp.Subquery):
                self.of_query(source)
        names: list[str] = []
        for column in query.expressions:
            names += self._projection(query, column, sources)
        if not is_grouped(query) and not any(map(is_optional, joins_of(query))):
            self._equalities(query, sources)
        return names

    def _projection(self, query: exp.Select, column: exp.Expr, sources: list[exp.Expr]) -> list[str]:
        kept: list[tuple[str, _Node | None]]
        if column.is_star:
            table = column.args.get("table")
            star = column.this if isinstance(column, exp.Column) else column
            hidden = {name.name.lower() for name in star.args.get("except_") or ()}
            shown = [
                source for source in sources if table is None or source.alias_or_name.lower() == table.name.lower()
            ]
            pairs = [
                (self._outer(source, name), self._node(source, name))
                for source in shown
                for name in self.columns_of(source)
            ]
            kept = [(name, node) for name, node in pairs if name not in hidden]
        else:
            kept = [(column.alias_or_name.lower(), self._resolved(column.unalias(), sources))]
        if not is_grouped(query):
            for name, node in kept:
                if node is not None:
                    self._same((id(query), name), node)
        return [name for name, _ in kept]

    def _equalities(self, query: exp.Select, sources: list[exp.Expr]) -> None:
        where = query.args.get("where")
        conditions = [where.this] if where else []
        conditions += [join.args["on"] for join in joins_of(query) if join.args.get("on")]
        for condition in conditions:
            for part in condition.flatten() if isinstance(condition, exp.And) else [condition]:
                part = part.unnest()
                if isinstance(part, exp.EQ):
                    left, right = (self._resolved(side, sources) for side in (part.this, part.expression))
                    if left is not None and right is not None:
                        self._same(left, right)
        for join in joins_of(query):
            for name in join.args.get("using") or ():
                self._using(name.name.lower(), join, sources)

    def _using(self, name: str, join: exp.Join, sources: list[exp.Expr]) -> None:
        own = {id(source) for source in sources_in(join.this)}
        having = [source for source in sources if name in self._outer_names(source)]
        right = [source for source in having if id(source) in own]
        left = [source for source in having if id(source) not in own]
        if len(right) == 1 and left:
            self._same(self._by_outer(left[0], name), self._by_outer(right[0], name))

    def _resolved(self, node: exp.Expr, sources: list[exp.Expr]) -> _Node | None:
        """The source column that an expression names; None if it is more than a column, or ambiguous."""
        if not isinstance(node, exp.Column) or node.is_star or node.args.get("db"):
            return None
        name, table = node.name.lower(), node.table.lower()
        found = [
            source
            for source in sources
            if table in ("", source.alias_or_name.lower()) and name in self._outer_names(source)
        ]
        return self._by_outer(found[0], name) if len(found) == 1 else None

    def _outer_names(self, source: exp.Expr) -> list[str]:
        """The columns of a source under the names of its alias."""
        alias = source.args.get("alias")
        given = [name.name.lower() for name in (alias.args.get("columns") or ())] if alias is not None else []
        return given or self.columns_of(source)

    def _outer(self, source: exp.Expr, name: str) -> str:
        return self._outer_names(source)[self.columns_of(source).index(name)]

    def _by_outer(self, source: exp.Expr, name: str) -> _Node:
        return self._node(source, self.columns_of(source)[self._outer_names(source).index(name)])

    def _node(self, source: exp.Expr, name: str) -> _Node:
        return id(source if isinstance(source, exp.Table) else block_of(source)), name

    def _same(self, left: _Node, right: _Node) -> None:
        self.equal[left].add(right)
        self.equal[right].add(left)

    def _closed(self, nodes: set[_Node]) -> set[_Node]:
        found, todo = set(nodes), list(nodes)
        while todo:
            for node in self.equal[todo.pop()] - found:
                found.add(node)
                todo.append(node)
        return found
