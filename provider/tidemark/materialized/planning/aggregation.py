"""The block of a query whose aggregates can be kept as signed sums, and what it aggregates."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from tidemark.changes.planning.views.parts import is_grouped, is_optional
from tidemark.changes.planning.views.sources import block_of, sources_of
from tidemark.changes.planning.views.text import sql_of
from tidemark.materialized.planning.partials import Role
from tidemark.sql.functions import is_bare_star

__all__ = ["Aggregation", "Call", "NotSums", "aggregating_block", "read_aggregation"]

_ROLES = {exp.Count: Role.COUNT, exp.Sum: Role.SUM, exp.Avg: Role.AVERAGE, exp.Min: Role.LOW, exp.Max: Role.HIGH}


class NotSums(Exception):
    """The reason why a query has no signed sums. It does not leave this package."""


@dataclass(frozen=True)
class Call:
    """A call of count, sum, avg, min or max. `argument`: its expression; for a count, the condition under which a row
    counts; None if each row does.
    """

    node: exp.Expr
    argument: exp.Expr | None
    role: Role


@dataclass(frozen=True)
class Aggregation:
    """The parts of an aggregating block. `groups`: expressions over its sources. `of_rows`: it is a DISTINCT, whose
    groups are its columns. `sources`: their names, but for those that are columns, too. `qualifiers`: of each column,
    those of its names.
    """

    block: exp.Select
    groups: tuple[exp.Expr, ...]
    of_rows: bool
    calls: tuple[Call, ...] = ()
    sources: frozenset[str] = frozenset()
    qualifiers: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def key(self, node: exp.Expr) -> str:
        """The same text for expressions that differ in the case and the unneeded qualifiers of names. A field of a
        struct has the name of its column.
        """

        def plain(part: exp.Expr) -> exp.Expr:
            if isinstance(part, exp.Column) and not part.is_star:
                qualifier, names = _parts(part, self.sources)
                if qualifier and len(self.qualifiers.get(names[0], ())) > 1:
                    names = (qualifier, *names)
                return exp.column(*reversed(names))
            return exp.to_identifier(part.name.lower()) if isinstance(part, exp.Identifier) else part

        return sql_of(node.unnest().copy().transform(plain))


def aggregating_block(tree: exp.Select) -> exp.Select | None:
    """The outermost block that aggregates a linear query, if nothing but single blocks are around it."""
    node = tree
    while True:
        if is_grouped(node) and _is_linear_below(node):
            return node
        sources = list(sources_of(node))
        inner = block_of(sources[0]) if len(sources) == 1 else None
        if not isinstance(inner, exp.Select):
            return None
        node = inner


def read_aggregation(block: exp.Select, columns: Sequence[str]) -> Aggregation:
    """The parts of the block. `columns`: those of its sources. Raises NotSums."""
    nodes = [*block.expressions, *filter(None, (block.args.get("having"), block.args.get("group")))]
    sources = frozenset(source.alias_or_name.lower() for source in sources_of(block)) - {n.lower() for n in columns}
    qualifiers: dict[str, set[str]] = {}
    for column in (found for node in nodes for found in node.find_all(exp.Column)):
        qualifier, names = _parts(column, sources)
        if qualifier:
            qualifiers.setdefault(names[0], set()).add(qualifier)
    known = {name: frozenset(found) for name, found in qualifiers.items()}
    calls = tuple(_calls(block))
    if block.args.get("distinct"):
        if block.args.get("group") or block.args.get("having") or calls:
            raise NotSums("DISTINCT over groups is computed from the base")
        return Aggregation(block, (), of_rows=True, sources=sources, qualifiers=known)
    if any(item.is_star for item in block.expressions):
        raise NotSums("a star among groups is computed from the base")
    found = Aggregation(block, tuple(_groups(block, columns)), False, calls, sources, known)
    texts: dict[str, str] = {}
    for group in found.groups:
        if texts.setdefault(found.key(group), sql_of(group)) != sql_of(group):
            raise NotSums(f"the group {sql_of(group)} is written in two ways and is computed from the base")
    return found


def _parts(column: exp.Column, sources: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """The source that the column is qualified with, or "", and its own name with those of fields in it."""
    first, *rest = (part.name.lower() for part in column.parts)
    return (first, tuple(rest)) if rest and first in sources else ("", (first, *rest))


def _is_linear_below(block: exp.Select) -> bool:
    below = [node for node in block.find_all(exp.Select) if node is not block]
    return not any(map(is_grouped, below)) and not any(is_optional(join) for join in block.find_all(exp.Join))


def _groups(block: exp.Select, columns: Sequence[str]) -> Iterator[exp.Expr]:
    group = block.args.get("group")
    if group is None:
        return
    if group.args.get("all"):
        yield from (item.unalias() for item in block.expressions if not item.find(exp.AggFunc))
        return
    known = {name.lower() for name in columns}
    for key in group.expressions:
        node = key.unnest()
        if isinstance(node, exp.Literal) and not node.is_string:
            yield block.expressions[int(node.name) - 1].unalias()
        elif isinstance(node, exp.Column) and not node.table and node.name.lower() not in known:
            yield _item(block, node.name)
        else:
            yield node


def _item(block: exp.Select, name: str) -> exp.Expr:
    """The column of the block that has the alias."""
    for item in block.expressions:
        if isinstance(item, exp.Alias) and item.alias.lower() == name.lower():
            found: exp.Expr = item.this
            return found
    raise NotSums(f"the group {name} is computed from the base")


def _calls(block: exp.Select) -> Iterator[Call]:
    """The aggregates of the columns and of HAVING. Raises NotSums for other functions."""
    having = block.args.get("having")
    for part in [*block.expressions, *([having] if having else [])]:
        for node in part.find_all(exp.AggFunc):
            yield _call(node)


def _call(call: exp.AggFunc) -> Call:
    node: exp.Expr = call
    condition: exp.Expr | None = None
    if isinstance(call.parent, exp.Filter):
        node = call.parent
        condition = node.expression.this
    values = [call.this, *call.expressions]
    role = _ROLES.get(type(call))
    if role is None or any(isinstance(value, exp.Distinct) for value in values):
        raise NotSums(f"{sql_of(call)} is computed from the base, for the groups of changed rows")
    if any(value.find(exp.AggFunc) for value in values if value is not None):
        raise NotSums("an aggregate of aggregates is computed from the base")
    if role is Role.COUNT:
        return Call(node, _counted(values, condition), role)
    if condition is not None:
        case = exp.Case(ifs=[exp.If(this=condition.copy(), true=call.this.copy())])
        return Call(node, case, role)
    return Call(node, call.this, role)


def _counted(values: Sequence[exp.Expr | None], condition: exp.Expr | None) -> exp.Expr | None:
    """The condition under which a row counts; None if each does. Raises NotSums for the columns of other stars."""
    if any(value is not None and value.is_star and (len(values) > 1 or not is_bare_star(value)) for value in values):
        raise NotSums("a count of the columns of a star is computed from the base")
    asked = [
        value for value in values if value is not None and not value.is_star and not isinstance(value, exp.Literal)
    ]
    parts: list[exp.Expr] = [_is_there(value) for value in asked]
    if condition is not None:
        parts.append(exp.func("coalesce", condition.copy(), exp.false()))
    return exp.and_(*parts, copy=False) if parts else None


def _is_there(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=exp.paren(value.copy()), expression=exp.null()))
