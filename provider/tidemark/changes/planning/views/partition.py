"""Keys that partition a query: rows with one value of the key give exactly the result's rows with that value. So a
change touches only rows with the key of a changed row, groups and optional partners included.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from tidemark.changes.planning.views.parts import Parts, is_grouped, is_optional, numbered
from tidemark.changes.planning.views.sources import block_of, sources_of
from tidemark.model.views import ViewQuery

__all__ = ["PartitionKey", "partition_keys"]

_MOST = 64  # considered for one part of a query


@dataclass(frozen=True)
class PartitionKey:
    """A key: its column in each scan that it cuts. Other scans are of unchanged tables.

    `shown`: the columns of the result that have the key's value in each row.
    """

    scans: Mapping[int, str]
    shown: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True)
class _Keyed:
    columns: tuple[str, ...]
    keys: tuple[PartitionKey, ...]
    changed: bool


@dataclass(frozen=True)
class _Source:
    """An item of FROM: its columns and keys under their names in the block, `alias.column`."""

    alias: str
    columns: tuple[str, ...]
    keys: tuple[PartitionKey, ...]
    changed: bool


def partition_keys(
    query: ViewQuery, changed: Collection[int], columns: Sequence[Sequence[str]]
) -> tuple[PartitionKey, ...]:
    """The keys of the query if the base tables `changed` have changed, the most selective first. `columns`: those of
    each base table.
    """
    parts = numbered(query)
    must = {number for number, base in parts.bases.items() if base in changed}
    found = _Keys(parts, frozenset(changed), columns).of_query(parts.tree).keys
    return tuple(sorted((key for key in found if must <= key.scans.keys()), key=lambda key: -len(key.scans)))


@dataclass(frozen=True)
class _Keys:
    parts: Parts
    changed: frozenset[int]
    columns: Sequence[Sequence[str]]

    def of_query(self, query: exp.Expr) -> _Keyed:
        found = block_of(query)
        if isinstance(found, exp.SetOperation):
            return self._union(found)
        assert isinstance(found, exp.Select)
        return self._select(found)

    def _union(self, query: exp.SetOperation) -> _Keyed:
        left, right = self.of_query(query.this), self.of_query(query.expression)
        indices = {name: index for index, name in enumerate(left.columns)}
        keys = []
        whole = PartitionKey({})
        for one in (*left.keys, *(() if left.changed else (whole,))):
            for other in (*right.keys, *(() if right.changed else (whole,))):
                shown = {name for name in one.shown if right.columns[indices[name]] in other.shown}
                keys.append(PartitionKey({**one.scans, **other.scans}, frozenset(shown)))
        keys.sort(key=lambda key: -len(key.shown))
        return _Keyed(left.columns, tuple(keys[:_MOST]), left.changed or right.changed)

    def _select(self, query: exp.Select) -> _Keyed:
        items = (
            [query.args["from_"].this, *(join.this for join in query.args.get("joins") or ())]
            if query.args.get("from_")
            else []
        )
        if any(list(sources_of(exp.Select(from_=exp.From(this=item.copy())))) != [item] for item in items):
            return _Keyed(tuple(column.alias_or_name.lower() for column in query.expressions), (), True)
        sources = [self._source(item) for item in items]
        keys = self._joined(query, sources)
        columns, shown = self._projected(query, sources)
        keys = [
            replace(key, shown=frozenset(name for name, inner in shown if inner in key.shown))
            for key in self._kept(query, sources, keys)
        ]
        return _Keyed(tuple(columns), tuple(keys), any(source.changed for source in sources))

    def _source(self, item: exp.Expr) -> _Source:
        alias = item.alias_or_name.lower()
        if isinstance(item, exp.Table):
            number = self.parts.number(item)
            base = self.parts.bases[number]
            names = tuple(name.lower() for name in self.columns[base])
            found = _Keyed(
                names, tuple(PartitionKey({number: name}, frozenset({name})) for name in names), base in self.changed
            )
        else:
            found = self.of_query(item)
        given = item.args["alias"].args.get("columns") if item.args.get("alias") else None
        outer = [name.name.lower() for name in given] if given else list(found.columns)
        named = {inner: f"{alias}.{name}" for inner, name in zip(found.columns, outer, strict=False)}
        keys = tuple(
            replace(key, shown=frozenset(named[name] for name in key.shown if name in named)) for key in found.keys
        )
        if not found.changed:
            keys = (*keys, PartitionKey({}))
        return _Source(alias, tuple(f"{alias}.{name}" for name in outer), keys, found.changed)

    def _joined(self, query: exp.Select, sources: list[_Source]) -> list[PartitionKey]:
        if not sources:
            return [PartitionKey({})]
        where = query.args.get("where")
        keys, changed = list(sources[0].keys), sources[0].changed
        for index, join in enumerate(query.args.get("joins") or (), start=1):
            right = sources[index]
            conditions = [join.args.get("on"), None if is_optional(join) else where and where.this]
            equal = list(_equalities(conditions, sources[: index + 1]))
            equal += _using(join, sources[:index], right)
            keys = _after_join(join, keys, changed, right, equal)[:_MOST]
            changed = changed or right.changed
        return keys

    def _kept(self, query: exp.Select, sources: list[_Source], keys: list[PartitionKey]) -> list[PartitionKey]:
        """The keys that each group has in full."""
        if not is_grouped(query):
            return keys
        group, distinct = query.args.get("group"), query.args.get("distinct")
        if group is not None and group.args.get("all"):
            by: list[exp.Expr] = [column.unalias() for column in query.expressions if not column.find(exp.AggFunc)]
        elif group is not None:
            by = [_meant(query, one) for one in group.expressions]
        elif distinct and not any(column.find(exp.AggFunc) for column in query.expressions):
            by = [column.unalias() for column in query.expressions]
        else:
            return []
        if distinct and group is not None:
            return []
        names = {name for one in by for name in _columns_of(one, sources)}
        return [key for key in keys if key.shown & names]

    def _projected(self, query: exp.Select, sources: list[_Source]) -> tuple[list[str], list[tuple[str, str]]]:
        """The columns of a block, and those among them that are columns of its sources."""
        columns: list[str] = []
        shown: list[tuple[str, str]] = []
        for column in query.expressions:
            if column.is_star:
                star = column.this if isinstance(column, exp.Column) else column
                hidden = {name.name.lower() for name in star.args.get("except_") or ()}
                pairs = [(name.split(".", 1)[1], name) for name in _columns_of(column, sources)]
                pairs = [pair for pair in pairs if pair[0] not in hidden]
            else:
                inner = _columns_of(column.unalias(), sources)
                columns.append(column.alias_or_name.lower())
                pairs = []
                shown += [(column.alias_or_name.lower(), name) for name in inner]
            columns += [name for name, _ in pairs]
            shown += pairs
        return columns, shown


def _after_join(
    join: exp.Join, keys: list[PartitionKey], changed: bool, right: _Source, equal: list[tuple[str, str]]
) -> list[PartitionKey]:
    """The keys of a join. An equality of the key cuts both sides; only one side is cut if the other did not change."""
    side, asks = join.side.upper(), join.kind.upper() in ("SEMI", "ANTI")
    found = []
    for one in keys:
        for other in right.keys:
            if any((a in one.shown and b in other.shown) or (b in one.shown and a in other.shown) for a, b in equal):
                shown = {"LEFT": one.shown, "RIGHT": other.shown, "FULL": frozenset[str]()}.get(
                    side, one.shown | other.shown
                )
                found.append(PartitionKey({**one.scans, **other.scans}, one.shown if asks else shown))
    if not right.changed and side in ("", "LEFT"):
        found += keys
    if not changed and side in ("", "RIGHT") and not asks:
        found += list(right.keys)
    return found


def _equalities(conditions: Sequence[exp.Expr | None], sources: list[_Source]) -> Iterator[tuple[str, str]]:
    for condition in filter(None, conditions):
        for part in condition.flatten() if isinstance(condition, exp.And) else [condition]:
            bare = part.unnest()
            if isinstance(bare, exp.EQ | exp.NullSafeEQ):
                left, right = (_columns_of(one, sources) for one in (bare.this, bare.expression))
                if len(left) == len(right) == 1:
                    yield left[0], right[0]


def _using(join: exp.Join, left: list[_Source], right: _Source) -> list[tuple[str, str]]:
    found = []
    for name in join.args.get("using") or ():
        other = f"{right.alias}.{name.name.lower()}"
        found += [
            (f"{source.alias}.{name.name.lower()}", other)
            for source in left
            if f"{source.alias}.{name.name.lower()}" in source.columns
        ][:1]
    return found


def _columns_of(node: exp.Expr, sources: list[_Source]) -> list[str]:
    """The source columns of a column: one, or all of a star; none if it is more than a column."""
    if node.is_star:
        table = node.args.get("table") if isinstance(node, exp.Column) else None
        return [
            name for source in sources if table is None or source.alias == table.name.lower() for name in source.columns
        ]
    if not isinstance(node, exp.Column) or node.args.get("db"):
        return []
    names = [f"{source.alias}.{node.name.lower()}" for source in sources if node.table.lower() in ("", source.alias)]
    known = {name for source in sources for name in source.columns}
    found = [name for name in names if name in known]
    return found if len(found) == 1 else []


def _meant(query: exp.Select, key: exp.Expr) -> exp.Expr:
    """The expression that a number or an alias in GROUP BY means."""
    if isinstance(key, exp.Literal) and not key.is_string:
        meant: exp.Expr = query.expressions[int(key.name) - 1].unalias()
        return meant
    return key
