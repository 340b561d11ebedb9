"""The shape in which the rows of a query are kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from tidemark.changes.planning.views.parts import numbered
from tidemark.changes.planning.views.text import sql_of
from tidemark.materialized.model.shapes import KEPT, KeptShape, Shape
from tidemark.materialized.planning.aggregation import (
    Aggregation,
    Call,
    NotSums,
    aggregating_block,
    read_aggregation,
)
from tidemark.materialized.planning.partials import (
    COUNT,
    GROUP,
    NET,
    Argument,
    average_of,
    partials_of,
    sum_of,
    unkeepable,
)
from tidemark.model.views import ViewQuery
from tidemark.sql.foreign_sql import SPARK, tree_of
from tidemark.sql.identifiers import quoted

__all__ = ["Analyse", "plain_shape", "rows_shape", "shape_of"]

Analyse = Callable[[str], str]
"""The schema (JSON) of a query over tables named BASE and their number."""


def shape_of(query: ViewQuery, *, analyse: Analyse, sums: bool, drifting: bool) -> KeptShape:
    """The shape of a query whose changes can be computed. `sums`: partial aggregates may be kept, as for materialized
    views; `drifting`: also of floats.
    """
    if not sums:
        return rows_shape(query)
    try:
        return _sums_shape(query, analyse, drifting=drifting)
    except NotSums as reason:
        return rows_shape(query, str(reason) or None)


def rows_shape(query: ViewQuery, why: str | None = None) -> KeptShape:
    """The rows of the query with their ids."""
    return KeptShape(Shape.ROWS, query, _all_columns(query), why=why)


def plain_shape(query: ViewQuery, why: str) -> KeptShape:
    """The rows of a query whose changes cannot be computed, for the reason `why`."""
    return KeptShape(Shape.PLAIN, query, _all_columns(query), why=why)


def _all_columns(query: ViewQuery) -> str:
    names = [quoted(str(field["name"])) for field in json.loads(query.schema_json)["fields"]]
    return f"SELECT {', '.join(names)} FROM {KEPT}"


def _sums_shape(query: ViewQuery, analyse: Analyse, *, drifting: bool) -> KeptShape:
    tree = numbered(query).tree
    block = aggregating_block(tree)
    if block is None:
        raise NotSums
    found = read_aggregation(block, _names(analyse(sql_of(_rows_below(block, [exp.Star()])))))
    work = _Sums(found, analyse, drifting)
    text = work.followed()
    followed = replace(query, text=text, schema_json=analyse(text))
    arguments = work.arguments(followed.schema_json)
    groups = work.groups(followed.schema_json)
    read = work.read(groups, arguments)
    block.replace(read) if block is not tree else None
    whole = read if block is tree else tree
    return KeptShape(Shape.SUMS, followed, sql_of(whole), sums=_sums(groups, arguments), query=query, why=None)


@dataclass(frozen=True)
class _Kept:
    """An argument of aggregates, and whether it is summed."""

    argument: Argument
    summed: bool


class _Sums:
    """The texts of one aggregation."""

    def __init__(self, found: Aggregation, analyse: Analyse, drifting: bool) -> None:
        self.found, self.drifting = found, drifting
        own = found.block.copy()
        if found.of_rows:
            own.set("distinct", None)
        self.names = _names(analyse(sql_of(own)))
        self.values: dict[str, Call] = {}
        for call in found.calls:
            if call.argument is not None:
                self.values.setdefault(self._key(call), call)

    def _key(self, call: Call) -> str:
        assert call.argument is not None
        return f"{call.summed} {self.found.key(call.argument)}"

    def followed(self) -> str:
        """The rows below the aggregation: groups, then arguments."""
        groups = list(self.found.block.expressions) if self.found.of_rows else [*self.found.groups]
        items = [*groups, *(call.argument for call in self.values.values() if call.argument is not None)]
        count = len(self.names) if self.found.of_rows else len(groups)
        names = [f"{GROUP}{n}" for n in range(count)] + [Argument(n, "").column for n in range(len(self.values))]
        if not items:  # count(*) alone
            items, names = [exp.cast(exp.Literal.number(1), "int")], [f"{COUNT}_"]
        inner = _rows_below(self.found.block, [item.copy() for item in items])
        alias = exp.TableAlias(this=exp.to_identifier("tidemark_q"))
        shown: list[exp.Expr] = [exp.column(name) for name in names]
        if any(item.is_star for item in items):  # by name, as a star may have more columns by now
            own = [exp.column(exp.to_identifier(name, quoted=True)) for name in self.names]
            shown = [exp.alias_(column, name) for column, name in zip(own, names, strict=True)]
        else:
            alias.set("columns", [exp.to_identifier(name) for name in names])
        source = exp.From(this=exp.Subquery(this=inner, alias=alias))
        return sql_of(exp.Select(expressions=shown, from_=source))

    def arguments(self, schema_json: str) -> dict[str, _Kept]:
        """The arguments by their keys. Raises NotSums for a type whose sums cannot be kept."""
        kinds = _kinds(schema_json)
        averaged = {self._key(call) for call in self.found.calls if call.argument and _call_of(call, exp.Avg)}
        kept: dict[str, _Kept] = {}
        for number, (key, call) in enumerate(self.values.items()):
            argument = Argument(number, kinds[Argument(number, "").column])
            reason = (
                unkeepable(argument.kind, drifting=self.drifting, averaged=key in averaged) if call.summed else None
            )
            if reason is not None:
                raise NotSums(reason)
            kept[key] = _Kept(argument, call.summed)
        return kept

    def groups(self, schema_json: str) -> list[str]:
        """The names of the group columns. Raises NotSums for texts of which several forms are equal."""
        kinds = _kinds(schema_json)
        found = [name for name in kinds if name.startswith(GROUP)]
        if "collation" in schema_json.lower():
            raise NotSums("groups of collated texts are computed from the base")
        return found

    def read(self, groups: Sequence[str], kept: Mapping[str, _Kept]) -> exp.Select:
        """The block's columns from the kept table."""
        columns = ", ".join([*groups, *(f"{_net(name)} AS {NET}{name}" for name in _columns(kept))])
        inner = f"SELECT {columns} FROM {KEPT}"
        if groups:
            inner += f" GROUP BY {', '.join(groups)} HAVING SUM({COUNT}) > 0"
        block = tree_of(f"SELECT 1 FROM ({inner}) AS tidemark_k", SPARK)
        assert isinstance(block, exp.Select)
        if self.found.of_rows:
            shown = [exp.alias_(exp.column(g), n, quoted=True) for g, n in zip(groups, self.names, strict=True)]
            block.set("expressions", shown)
            return block
        items = [self._replaced(item.unalias(), kept) for item in self.found.block.expressions]
        named = [exp.alias_(item, name, quoted=True) for item, name in zip(items, self.names, strict=True)]
        block.set("expressions", named)
        having = self.found.block.args.get("having")
        if having is not None:
            block.set("where", exp.Where(this=self._replaced(self._without_aliases(having.this), kept)))
        self._require_known(block, groups)
        return block

    def _replaced(self, node: exp.Expr, kept: Mapping[str, _Kept]) -> exp.Expr:
        """The expression over net partial aggregates and group columns."""
        keys = {self.found.key(group): f"{GROUP}{number}" for number, group in enumerate(self.found.groups)}
        calls = {call.node.sql(dialect=SPARK): call for call in self.found.calls}

        def over_kept(part: exp.Expr) -> exp.Expr:
            if isinstance(part, exp.AggFunc | exp.Filter) and part.sql(dialect=SPARK) in calls:
                return tree_of(self._value(calls[part.sql(dialect=SPARK)], kept), SPARK)
            if isinstance(part, exp.Condition) and self.found.key(part) in keys:
                return exp.column(keys[self.found.key(part)])
            return part

        return node.copy().transform(over_kept)

    def _value(self, call: Call, kept: Mapping[str, _Kept]) -> str:
        if call.argument is None:
            return f"{NET}{COUNT}"
        argument = kept[self._key(call)].argument
        if not call.summed:
            return f"{NET}{argument.count}"
        return f"({average_of(argument) if _call_of(call, exp.Avg) else sum_of(argument)})"

    def _without_aliases(self, condition: exp.Expr) -> exp.Expr:
        """HAVING with the columns of the block in place of their aliases."""
        items = {item.alias.lower(): item.this for item in self.found.block.expressions if isinstance(item, exp.Alias)}

        def meant(part: exp.Expr) -> exp.Expr:
            if isinstance(part, exp.AggFunc):
                return part.copy()  # a copy is not searched further
            if isinstance(part, exp.Column) and not part.table and part.name.lower() in items:
                found = items[part.name.lower()]
                own = self.found.key(part)
                if own != self.found.key(found) and own in map(self.found.key, self.found.groups):
                    raise NotSums(f"{part.name} in HAVING has two meanings and is computed from the base")
                return exp.paren(found.copy())
            return part

        return condition.copy().transform(meant)

    def _require_known(self, block: exp.Select, groups: Sequence[str]) -> None:
        """Nothing, or NotSums for columns that are no group, aggregate or alias."""
        aliases = {name.lower() for name in self.names}
        for part in [*block.expressions, *filter(None, [block.args.get("where")])]:
            for column in part.find_all(exp.Column):
                known = column.name in groups or column.name.startswith(NET)
                if not known and (column.table or column.name.lower() not in aliases):
                    raise NotSums(f"the column {column.name} is computed from the base")


def _columns(kept: Mapping[str, _Kept]) -> dict[str, str]:
    """The partial aggregates: name → expression over signed rows."""
    found = {COUNT: "COALESCE(SUM(tidemark_sign), 0)"}
    for one in kept.values():
        found |= partials_of(one.argument, summed=one.summed)
    return found


def _net(name: str) -> str:
    """The partial aggregate of all rows of a group. Sums are NULL if there are no values."""
    return f"SUM({name})" if name.startswith("tidemark_s") else f"COALESCE(SUM({name}), 0)"


def _sums(groups: Sequence[str], kept: Mapping[str, _Kept]) -> str:
    columns = _columns(kept)
    listed = ", ".join([*groups, *(f"{value} AS {name}" for name, value in columns.items())])
    grouped = f" GROUP BY {', '.join(groups)}" if groups else ""
    changed = " OR ".join(f"{name} <> 0" for name in columns)
    return f"SELECT {listed} FROM {KEPT}{grouped} HAVING {changed}"


def _rows_below(block: exp.Select, items: list[exp.Expr]) -> exp.Select:
    """The rows that the block aggregates, with these columns."""
    below = block.copy()
    for clause in ("group", "having", "distinct", "order", "sort", "cluster", "distribute"):
        below.set(clause, None)
    below.set("expressions", items)
    return below


def _call_of(call: Call, kind: type[exp.AggFunc]) -> bool:
    return isinstance(call.node.this if isinstance(call.node, exp.Filter) else call.node, kind)


def _names(schema_json: str) -> list[str]:
    return [str(field["name"]) for field in json.loads(schema_json)["fields"]]


def _kinds(schema_json: str) -> dict[str, str]:
    """The types of columns; "nested" for those that have parts."""
    fields = json.loads(schema_json)["fields"]
    return {field["name"]: field["type"] if isinstance(field["type"], str) else "nested" for field in fields}
