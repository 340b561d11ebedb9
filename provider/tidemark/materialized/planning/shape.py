"""The shape in which the rows of a query are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

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
    NET,
    Argument,
    Role,
    argument_column,
    net_of,
    partials_of,
    unkeepable,
    value_of,
)
from tidemark.model.foreign_json import parsed
from tidemark.model.views import ViewQuery
from tidemark.sql.foreign_sql import SPARK, tree_of
from tidemark.sql.identifiers import quoted
from tidemark.streams.model.partial_columns import COUNT, EPOCH, EXTREME, GONE, GROUP, SIGN

__all__ = ["Analyse", "plain_shape", "rows_shape", "shape_of"]

_EXTREMES = "groups that lose their minimum or maximum are computed from the base"

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


def plain_shape(query: ViewQuery, why: str, *, runtime_value: str | None = None) -> KeptShape:
    """The rows of a query whose changes cannot be computed, for the reason `why`."""
    return KeptShape(Shape.PLAIN, query, _all_columns(query), why=why, runtime_value=runtime_value)


def _all_columns(query: ViewQuery) -> str:
    names = [quoted(str(field["name"])) for field in parsed(query.schema_json)["fields"]]
    return f"SELECT {', '.join(names)} FROM {KEPT}"


def _sums_shape(query: ViewQuery, analyse: Analyse, *, drifting: bool) -> KeptShape:
    tree = numbered(query).tree
    block = aggregating_block(tree)
    if block is None:
        raise NotSums
    found = read_aggregation(block, _names(analyse(sql_of(_rows_below(block, [exp.Star()])))))
    work = _Sums(found, analyse)
    text = work.followed()
    followed = replace(query, text=text, schema_json=analyse(text))
    arguments = work.arguments(followed.schema_json, drifting=drifting)
    groups = work.groups(followed.schema_json)
    read = work.read(groups, arguments)
    if block is not tree:
        block.replace(read)
    return KeptShape(
        shape=Shape.SUMS,
        followed=followed,
        read=sql_of(read if block is tree else tree),
        sums=_sums(groups, arguments),
        why=_EXTREMES if _has_extremes(arguments) else None,
        query=query,
    )


class _Sums:
    """The texts of one aggregation."""

    def __init__(self, found: Aggregation, analyse: Analyse) -> None:
        self.found = found
        own = found.block.copy()
        if found.of_rows:
            own.set("distinct", None)
        self.names = _names(analyse(sql_of(own)))
        self.values: dict[str, exp.Expr] = {}
        for call in found.calls:
            if call.argument is not None:
                self.values.setdefault(self._key(call), call.argument)

    def _key(self, call: Call) -> str:
        """The same text for calls of one argument. A condition that is counted is no value that is summed."""
        assert call.argument is not None
        return f"{call.role is Role.COUNT} {self.found.key(call.argument)}"

    def followed(self) -> str:
        """The rows below the aggregation: groups, then arguments."""
        groups = list(self.found.block.expressions) if self.found.of_rows else [*self.found.groups]
        items = [*groups, *self.values.values()]
        count = len(self.names) if self.found.of_rows else len(groups)
        names = [f"{GROUP}{n}" for n in range(count)] + [argument_column(n) for n in range(len(self.values))]
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

    def arguments(self, schema_json: str, *, drifting: bool) -> dict[str, Argument]:
        """The arguments by their keys. Raises NotSums for one whose aggregates cannot be kept."""
        kinds = _kinds(schema_json)
        kept: dict[str, Argument] = {}
        for number, key in enumerate(self.values):
            calls = [call for call in self.found.calls if call.argument is not None and self._key(call) == key]
            argument = Argument(number, kinds[argument_column(number)], frozenset(call.role for call in calls))
            reason = unkeepable(argument, drifting=drifting)
            if reason is not None:
                raise NotSums(reason)
            kept[key] = argument
        return kept

    def groups(self, schema_json: str) -> list[str]:
        """The names of the group columns. Raises NotSums for texts that equal others, by their collation."""
        kinds = _kinds(schema_json)
        found = [name for name in kinds if name.startswith(GROUP)]
        if "collation" in schema_json.lower():
            raise NotSums("groups of collated texts are computed from the base")
        return found

    def read(self, groups: Sequence[str], kept: Mapping[str, Argument]) -> exp.Select:
        """The block's columns from the kept table."""
        columns = ", ".join([*groups, *(f"{net_of(name)} AS {NET}{name}" for name in _kept(kept))])
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

    def _replaced(self, node: exp.Expr, kept: Mapping[str, Argument]) -> exp.Expr:
        """The expression over net partial aggregates and group columns."""
        keys = {self.found.key(group): f"{GROUP}{number}" for number, group in enumerate(self.found.groups)}
        calls = {sql_of(call.node): call for call in self.found.calls}

        def over_kept(part: exp.Expr) -> exp.Expr:
            if isinstance(part, exp.AggFunc | exp.Filter) and sql_of(part) in calls:
                return tree_of(self._value(calls[sql_of(part)], kept), SPARK)
            if isinstance(part, exp.Condition) and self.found.key(part) in keys:
                return exp.column(keys[self.found.key(part)])
            return part

        return node.copy().transform(over_kept)

    def _value(self, call: Call, kept: Mapping[str, Argument]) -> str:
        return f"{NET}{COUNT}" if call.argument is None else value_of(kept[self._key(call)], call.role)

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


def _columns(kept: Mapping[str, Argument]) -> dict[str, str]:
    """The partial aggregates: name → expression over signed rows."""
    found = {COUNT: f"COALESCE(SUM({SIGN}), 0)"}
    for argument in kept.values():
        found |= partials_of(argument)
    return found | ({EPOCH: "CAST(0 AS BIGINT)"} if _has_extremes(kept) else {})


def _kept(kept: Mapping[str, Argument]) -> list[str]:
    """The names of the partial aggregates in the kept table."""
    return [name for name in _columns(kept) if not name.startswith(GONE) and name != EPOCH]


def _has_extremes(kept: Mapping[str, Argument]) -> bool:
    return any(argument.roles & {Role.LOW, Role.HIGH} for argument in kept.values())


def _sums(groups: Sequence[str], kept: Mapping[str, Argument]) -> str:
    columns = _columns(kept)
    listed = ", ".join([*groups, *(f"{value} AS {name}" for name, value in columns.items())])
    grouped = f" GROUP BY {', '.join(groups)}" if groups else ""
    changed = " OR ".join(f"{name} IS NOT NULL" if name.startswith(EXTREME) else f"{name} <> 0" for name in columns)
    return f"SELECT {listed} FROM {KEPT}{grouped} HAVING {changed}"


def _rows_below(block: exp.Select, items: list[exp.Expr]) -> exp.Select:
    """The rows that the block aggregates, with these columns."""
    below = block.copy()
    for clause in ("group", "having", "distinct", "order", "sort", "cluster", "distribute"):
        below.set(clause, None)
    below.set("expressions", items)
    return below


def _names(schema_json: str) -> list[str]:
    return [str(field["name"]) for field in parsed(schema_json)["fields"]]


def _kinds(schema_json: str) -> dict[str, str]:
    """The types of columns; "nested" for those that have parts."""
    fields = parsed(schema_json)["fields"]
    return {field["name"]: field["type"] if isinstance(field["type"], str) else "nested" for field in fields}
