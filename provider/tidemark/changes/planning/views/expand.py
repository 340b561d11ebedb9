"""One query over base tables from a stored view: nested views and CTEs become subqueries in FROM."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from tidemark.changes.planning.views.settings import settings_of
from tidemark.changes.planning.views.sources import block_of, sources_of
from tidemark.changes.planning.views.supported import IsFunction, require_supported
from tidemark.changes.planning.views.text import ViewText, parse_view, sql_of
from tidemark.errors import ViewNotUnderstood
from tidemark.model.codec import to_json
from tidemark.model.views import BASE, StoredTable, StoredView, ViewColumn, ViewQuery
from tidemark.sql.foreign_sql import SqlNotUnderstood

__all__ = ["Resolve", "digest_of", "expand"]

Resolve = Callable[[tuple[str, ...], tuple[str, ...]], StoredTable | StoredView]
"""The table or view of a name (its parts) in a namespace (catalog first)."""

_DEEPEST = 100  # nested views, as many as Spark reads


def expand(
    view: StoredView,
    schema_json: str,
    resolve: Resolve,
    *,
    beyond: bool = False,
    is_builtin: IsFunction,
    unnamed: bool = False,
) -> ViewQuery:
    """The query of `view`, over base tables only. `unnamed`: no catalog has it, so it notes the views that it reads.

    Raises ViewRefused if its changes cannot be computed (R70; `beyond`: see `require_supported`), ViewNotUnderstood,
    and errors of `resolve`.
    """
    work = _Expansion(resolve, beyond, is_builtin, settings_of(view.settings))
    try:
        text = sql_of(work.of_view(view, 0).transform(_with_parentheses))
        parse_view(view.name, text)  # as each consumption does
    except (SqlNotUnderstood, RecursionError) as error:
        raise ViewNotUnderstood(view=view.name, problem="it is nested too deeply") from error
    return ViewQuery(
        name=view.name,
        text=text,
        schema_json=schema_json,
        bases=tuple(work.bases),
        settings=work.settings,
        digest=_sha("\n".join(work.texts)),
        views=work.views if unnamed else None,
    )


def digest_of(view: StoredView) -> str:
    """The digest of a view's own text, with all that gives it its meaning."""
    return _sha("\n".join(_texts(view)))


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _texts(view: StoredView) -> tuple[str, str]:
    columns = [[column.name, column.source] for column in view.columns]
    said = to_json([view.text, view.namespace, columns])
    return said, json.dumps(settings_of(view.settings), sort_keys=True)


@dataclass(frozen=True)
class _Cte:
    """A common table expression, ready to replace its name."""

    query: exp.Expr
    columns: tuple[exp.Identifier, ...]


_Ctes = Mapping[str, _Cte]


@dataclass
class _Expansion:
    """The state of one expansion."""

    resolve: Resolve
    beyond: bool
    is_builtin: IsFunction
    settings: Mapping[str, str | None]
    bases: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    views: dict[str, str] = field(default_factory=dict)

    def of_view(self, view: StoredView, depth: int) -> exp.Select:
        """A SELECT of the view's columns from its expanded text."""
        if depth > _DEEPEST:
            raise ViewNotUnderstood(view=view.name, problem=f"it has more than {_DEEPEST} nested views")
        text = parse_view(view.name, view.text)
        require_supported(text, beyond=self.beyond, is_builtin=self.is_builtin)
        self.texts += _texts(view)
        if depth:
            self.views[view.name] = digest_of(view)
        named = _with_names(text.tree.copy(), view)
        inner = _Scope(self, text, view, depth).expanded(named, {})
        return _wrapped(inner, view)


@dataclass(frozen=True)
class _Scope:
    """The text of one view, whose names are resolved in its namespace."""

    work: _Expansion
    text: ViewText
    view: StoredView
    depth: int

    def expanded(self, query: exp.Expr, ctes: _Ctes) -> exp.Expr:
        """The query without WITH, and with a base table or a subquery in place of each name."""
        if isinstance(query, exp.Subquery) and isinstance(block_of(query), exp.Query):
            query.set("this", self.expanded(query.this, self._visible(query, ctes)))
            query.set("order", None)
            return query
        ctes = self._visible(query, ctes)
        for clause in ("order", "sort", "cluster", "distribute"):  # rows have no order (R36)
            query.set(clause, None)
        if isinstance(query, exp.SetOperation):
            query.set("this", self.expanded(query.this, ctes))
            query.set("expression", self.expanded(query.expression, ctes))
            return _distinct(query) if query.args.get("distinct") else query
        assert isinstance(query, exp.Select)
        for source in list(sources_of(query)):
            self._source(query, source, ctes)
        return query

    def _visible(self, query: exp.Expr, ctes: _Ctes) -> _Ctes:
        clause = query.args.get("with_")
        found = dict(ctes)
        for entry in clause.expressions if clause else ():
            columns = tuple(entry.args["alias"].args.get("columns") or ())
            found[entry.alias.lower()] = _Cte(self.expanded(entry.this, found), columns)
        query.set("with_", None)
        return found

    def _source(self, block: exp.Select, source: exp.Expr, ctes: _Ctes) -> None:
        if isinstance(source, exp.Subquery):
            self.expanded(source, ctes)
            return
        assert isinstance(source, exp.Table)
        parts = tuple(part.name for part in source.parts)
        cte = ctes.get(parts[0].lower()) if len(parts) == 1 else None
        if cte is not None:
            found: exp.Expr = _aliased(exp.Subquery(this=cte.query.copy()), source, cte.columns)
        else:
            found = self._resolved(source, parts)
            missing = max(len(self.view.namespace) + 1 - len(parts), 0)
            _shorten_qualifiers(block, (*self.view.namespace[:missing], *parts))
        found.set("joins", source.args.pop("joins", None))
        source.replace(found)

    def _resolved(self, source: exp.Table, parts: tuple[str, ...]) -> exp.Expr:
        meant = self.work.resolve(parts, self.view.namespace)
        if isinstance(meant, StoredView):
            if settings_of(meant.settings) != self.work.settings:
                raise self.text.refused(
                    "a view that was created under other SQL settings than the views that it reads",
                    source,
                    instead=f"Create {meant.name} and {self.view.name} under the same settings.",
                )
            nested = self.work.of_view(meant, self.depth + 1)
            return _aliased(exp.Subquery(this=nested), source, ())
        if meant.kind is not None:
            raise self.text.refused(f"'{meant.kind}'", source)
        if meant.name not in self.work.bases:
            self.work.bases.append(meant.name)
        return _aliased(exp.to_table(f"{BASE}{self.work.bases.index(meant.name)}"), source, ())


def _with_parentheses(node: exp.Expr) -> exp.Expr:
    """The call with parentheses, without which it is parsed as a column."""
    return exp.Anonymous(this="localtimestamp") if isinstance(node, exp.Localtimestamp) else node


def _with_names(tree: exp.Expr, view: StoredView) -> exp.Expr:
    """The tree with names for columns that Spark has named after their expression, whose form we change."""
    first = block_of(tree)
    while isinstance(first, exp.SetOperation):
        first = block_of(first.this)
    assert isinstance(first, exp.Select)
    if _has_star(first) or len(first.expressions) != len(view.columns):
        return tree
    for node, column in zip(list(first.expressions), view.columns, strict=True):
        if not isinstance(node, exp.Alias | exp.Column):
            node.replace(exp.alias_(node.copy(), column.source, quoted=True))
    return tree


def _wrapped(query: exp.Expr, view: StoredView) -> exp.Select:
    """The view's columns under its names: by position, or by name if a star may have more columns by now."""
    first = block_of(query)
    while isinstance(first, exp.SetOperation):
        first = block_of(first.this)
    by_place = isinstance(first, exp.Select) and not _has_star(first)
    names = [column.source for column in view.columns]
    if by_place and len({name.lower() for name in names}) != len(names):
        names = [f"c{number}" for number in range(len(names))]
    if len({name.lower() for name in names}) != len(names):
        raise ViewNotUnderstood(view=view.name, problem="a star has two columns of one name")
    alias = exp.TableAlias(this=exp.to_identifier("v"))
    if by_place:
        alias.set("columns", [exp.to_identifier(name, quoted=True) for name in names])
    inner = query.this if isinstance(query, exp.Subquery) and not query.alias else query
    columns = [_column(name, column) for name, column in zip(names, view.columns, strict=True)]
    return exp.Select(expressions=columns, from_=exp.From(this=exp.Subquery(this=inner, alias=alias)))


def _column(name: str, column: ViewColumn) -> exp.Expr:
    value: exp.Expr = exp.column(exp.to_identifier(name, quoted=True))
    if column.kind is not None:
        value = exp.cast(value, exp.DataType.build(column.kind, dialect="databricks"))
    return exp.alias_(value, column.name, quoted=True)


def _has_star(query: exp.Select) -> bool:
    return any(node.is_star for node in query.expressions)


def _distinct(query: exp.SetOperation) -> exp.Subquery:
    """UNION as DISTINCT over UNION ALL."""
    query.set("distinct", False)
    inner = exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier("u")))
    block = exp.Select(expressions=[exp.Star()], distinct=exp.Distinct(), from_=exp.From(this=inner))
    return exp.Subquery(this=block)


def _aliased(relation: exp.Expr, source: exp.Table, columns: tuple[exp.Identifier, ...]) -> exp.Expr:
    """`relation` under the alias of `source`, or its last name."""
    given = source.args.get("alias")
    name = given.this if given is not None and given.this is not None else exp.to_identifier(source.name, quoted=True)
    own = tuple(given.args.get("columns") or ()) if given is not None else ()
    listed = [column.copy() for column in own or columns]
    relation.set("alias", exp.TableAlias(this=name.copy(), columns=listed or None))
    return relation


def _shorten_qualifiers(block: exp.Select, parts: tuple[str, ...]) -> None:
    """Shortens qualifiers of several parts to the last one, which is the alias now."""
    name = tuple(part.lower() for part in parts)
    for column in list(block.find_all(exp.Column)):
        given = tuple(part.name.lower() for part in column.parts)
        sizes = [n for n in range(2, len(name) + 1) if given[:n] == name[-n:] and len(given) > n]
        if sizes:
            kept = reversed(column.parts[max(sizes) - 1 :])
            column.replace(exp.Column(**dict(zip(("this", "table", "db", "catalog"), kept, strict=False))))
