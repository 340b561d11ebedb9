"""A query whose rows have the parts of their id: a column for each part, through subqueries and unions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from tidemark.changes.planning.views.parts import Parts, is_grouped
from tidemark.changes.planning.views.sources import block_of, joins_of, sources_in, sources_of

__all__ = ["ID", "SCAN", "SIGN", "columns_of", "with_ids"]

SCAN = "tidemark_scan_"
ID = "tidemark_id_"
SIGN = "tidemark_sign"

_AS_TEXT = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def with_ids(parts: Parts, delta: int | None) -> tuple[exp.Expr, list[str]]:
    """The query with the columns of ids after its own, and those names; its scans are named SCAN and their number. With
    `delta`, a scan that gives changes, SIGN follows.

    After the columns of its table, a scan gives the id of its row as the column ID and its number (bigint). The scan
    `delta` also gives SIGN (int). A group gives its key as text. The column is NULL if a row does not have the part.
    """
    work = _WithIds(parts, delta)
    names = work.visible(parts.tree)
    return work.query(parts.tree, names), [name for name in names if name != SIGN]


def columns_of(names: Iterable[str]) -> list[exp.Identifier]:
    """Identifiers for a list of column names."""
    return [exp.to_identifier(name) for name in names]


class _WithIds:
    """A rewrite of the tree of `parts` in place."""

    def __init__(self, parts: Parts, delta: int | None) -> None:
        self.parts, self.delta = parts, delta

    def visible(self, node: exp.Expr) -> list[str]:
        """The columns of ids that the rows of a table or query can have, SIGN last."""
        found = block_of(node)
        if id(found) in self.parts.numbers:
            number = self.parts.number(found)
            return [f"{ID}{number}", *([SIGN] if number == self.delta else [])]
        if isinstance(found, exp.SetOperation):
            return _sign_last([*self.visible(found.this), *self.visible(found.expression)])
        assert isinstance(found, exp.Select)
        return _sign_last([name for source in _shown(found) for name in self.visible(source)])

    def query(self, node: exp.Expr, wanted: Sequence[str]) -> exp.Expr:
        """The query with the columns `wanted` after its own."""
        if isinstance(node, exp.Subquery):
            node.set("this", self.query(node.this, wanted))
            return node
        if isinstance(node, exp.SetOperation):
            node.set("this", self.query(node.this, wanted))
            node.set("expression", self.query(node.expression, wanted))
            return node
        assert isinstance(node, exp.Select)
        if is_grouped(node):
            return self._group(node, wanted)
        carried = self._sources(node, wanted)
        own = [f"{ID}{self.parts.number(node)}"] if not node.args.get("from_") else []
        _show(node, carried, [_value(name, carried, own) for name in wanted])
        return node

    def _sources(self, node: exp.Select, wanted: Sequence[str]) -> dict[int, list[str]]:
        """The ids that each source has after the rewrite, by the identity of its node."""
        carried: dict[int, list[str]] = {}
        for source in sources_of(node):
            names = self.visible(source)
            if isinstance(source, exp.Table):
                source.set("this", exp.to_identifier(f"{SCAN}{self.parts.number(source)}"))
            else:
                names = [name for name in names if name in wanted]
                source.set("this", self.query(source.this, names))
            alias = source.args.get("alias")
            if alias is not None and alias.args.get("columns"):
                alias.set("columns", [*alias.args["columns"], *columns_of(names)])
            carried[id(source)] = names
        return carried

    def _group(self, node: exp.Select, wanted: Sequence[str]) -> exp.Expr:
        """A group with its key as text, if it is in `wanted`."""
        name = f"{ID}{self.parts.number(node)}"
        carried = self._sources(node, ())
        if not node.args.get("distinct"):
            key = exp.alias_(_as_text(_group_key(node)), name)
            _show(node, carried, [key if one == name else _null(one) for one in wanted])
            return node
        _show(node, carried, [])
        star = exp.Column(this=exp.Star(), table=exp.to_identifier("d"))
        key = exp.alias_(_as_text([star.copy()]), name)
        return exp.Select(
            expressions=[star, *(key if one == name else _null(one) for one in wanted)],
            from_=exp.From(this=exp.Subquery(this=node, alias=exp.TableAlias(this=exp.to_identifier("d")))),
        )


def _shown(node: exp.Select) -> list[exp.Expr]:
    """The sources whose columns a block can show: not those of semi and anti joins."""
    hidden = {id(source) for join in joins_of(node) if _only_asks(join) for source in sources_in(join.this)}
    return [source for source in sources_of(node) if id(source) not in hidden]


def _only_asks(join: exp.Join) -> bool:
    return join.kind.upper() in ("SEMI", "ANTI")


def _sign_last(names: list[str]) -> list[str]:
    return [*(name for name in names if name != SIGN), *([SIGN] if SIGN in names else [])]


def _show(node: exp.Select, carried: dict[int, list[str]], values: list[exp.Expr]) -> None:
    """Adds `values` after the block's own columns. Its stars do not show the ids of its sources."""
    by_alias = {source.alias_or_name.lower(): carried.get(id(source), []) for source in sources_of(node)}
    shown = [name for source in _shown(node) for name in carried.get(id(source), [])]
    for column in node.expressions:
        if column.is_star:
            star = column.this if isinstance(column, exp.Column) else column
            table = column.args.get("table") if isinstance(column, exp.Column) else None
            names = shown if table is None else by_alias.get(table.name.lower(), [])
            given = star.args.get("except_") or []
            if given or names:
                star.set("except_", [*given, *(exp.column(name) for name in names)])
    node.set("expressions", [*node.expressions, *values])


def _value(name: str, carried: dict[int, list[str]], own: list[str]) -> exp.Expr:
    if name in own:
        return exp.alias_(exp.cast(exp.Literal.number(0), "bigint"), name)
    return exp.column(name) if any(name in names for names in carried.values()) else _null(name)


def _null(name: str) -> exp.Expr:
    return exp.alias_(exp.null(), name)


def _group_key(node: exp.Select) -> list[exp.Expr]:
    group = node.args.get("group")
    if group is None:
        return []
    if group.args.get("all"):
        return [column.unalias() for column in node.expressions if not column.find(exp.AggFunc)]
    return [_meant(node, key) for key in group.expressions]


def _meant(node: exp.Select, key: exp.Expr) -> exp.Expr:
    """The expression that a number in GROUP BY means."""
    if isinstance(key, exp.Literal) and not key.is_string:
        meant: exp.Expr = node.expressions[int(key.name) - 1].unalias()
        return meant
    return key


def _as_text(values: list[exp.Expr]) -> exp.Expr:
    """The same text for values that GROUP BY treats as equal."""
    if not values:
        return exp.Literal.string("")
    copies = [value.copy() for value in values]
    if copies[0].is_star:
        named = exp.Anonymous(this="struct", expressions=copies)
    else:
        pairs = [part for number, value in enumerate(copies) for part in (exp.Literal.string(f"k{number}"), value)]
        named = exp.Anonymous(this="named_struct", expressions=pairs)
    options = [exp.Literal.string(text) for pair in _AS_TEXT.items() for text in pair]
    return exp.Anonymous(this="to_json", expressions=[named, exp.Anonymous(this="map", expressions=options)])
