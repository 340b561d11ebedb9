"""The queries that a stream can follow: the rules of R70, and the queries allowed beyond them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import TokenType, exp

from tidemark.changes.planning.views.sources import joins_of, queries_in, sources_of
from tidemark.changes.planning.views.text import ViewText
from tidemark.sql.functions import makes_rows, name_of, of_the_row

__all__ = ["require_supported"]

_BEYOND = "Create the stream with beyond_snowflake=True: it follows such queries too."
_GROUPED = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)
_JOIN_WORDS = tuple(TokenType[name] for name in ("LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI", "JOIN"))
_TABLE_FUNCTION = "'Table Function'"

IsFunction = Callable[[str], bool]


def require_supported(text: ViewText, *, beyond: bool, is_builtin: IsFunction) -> None:
    """Nothing, if the changes of the query's result can be computed from those of its base tables.

    Projection, filter, inner and cross join, UNION ALL, subqueries in FROM and plain CTEs are allowed (R70). With
    `beyond` these are allowed, too: GROUP BY with count, sum, avg, min, max, DISTINCT, UNION, outer, semi and anti
    joins. `is_builtin`: whether a function is Spark's own and no user's. Raises ViewRefused with the first unsupported
    place.
    """
    for clause in text.tree.find_all(exp.With):
        if clause.args.get("recursive"):
            raise text.refused("recursive common table expressions", clause, TokenType.WITH)
    rules = _Rules(text, beyond, is_builtin)
    for query in queries_in(text.tree):
        if isinstance(query, exp.SetOperation):
            rules.set_operation(query)
        elif isinstance(query, exp.Select):
            rules.select(query)
        else:
            raise text.refused(f"'{type(query).__name__}'", query)


class _Rules:
    """The rules, for the queries of one text."""

    def __init__(self, text: ViewText, beyond: bool, is_builtin: IsFunction) -> None:
        self.text, self.beyond, self.is_builtin = text, beyond, is_builtin

    def set_operation(self, query: exp.SetOperation) -> None:
        self._no_limit(query)
        kind = {exp.Except: TokenType.EXCEPT, exp.Intersect: TokenType.INTERSECT}.get(type(query))
        if kind is not None:
            raise self.text.refused(f"joins of type '[{kind.name}]'", query.expression, kind)
        if query.args.get("by_name"):
            raise self.text.refused("UNION BY NAME", query.expression, TokenType.UNION)
        if query.args.get("distinct"):
            self._beyond("joins of type '[UNION]'", query.expression, TokenType.UNION)

    def select(self, query: exp.Select) -> None:
        self._no_limit(query)
        for window in query.find_all(exp.Window):
            raise self.text.refused("window functions", window, TokenType.OVER)
        if query.args.get("qualify"):
            raise self.text.refused("QUALIFY", query.args["qualify"], TokenType.QUALIFY)
        if query.args.get("laterals"):
            raise self.text.refused(_TABLE_FUNCTION, query.args["laterals"][0], TokenType.LATERAL)
        self._sources(query)
        for join in joins_of(query):
            self._join(join)
        self._behind_commas(query)
        self._grouping(query)
        for node in _expressions(query):
            self._expression(node)

    def _no_limit(self, query: exp.Query) -> None:
        for name, word in (("limit", TokenType.LIMIT), ("offset", TokenType.OFFSET), ("fetch", TokenType.FETCH)):
            if query.args.get(name):
                raise self.text.refused(word.name, query.args[name], word)

    def _sources(self, query: exp.Select) -> None:
        for source in sources_of(query):
            if isinstance(source, exp.Lateral):
                is_query = source.find(exp.Query) is not None
                construct = "correlated subquery expressions" if is_query else _TABLE_FUNCTION
                raise self.text.refused(construct, source, TokenType.LATERAL)
            if isinstance(source, exp.Values):
                raise self.text.refused("'Values'", source, TokenType.VALUES, instead="Put the rows into a table.")
            if isinstance(source, exp.UDTF) or not isinstance(source.this, exp.Identifier | exp.Query | exp.Table):
                raise self.text.refused(_TABLE_FUNCTION, source)
            for name, construct in (("pivots", "PIVOT"), ("sample", "TABLESAMPLE"), ("version", "time travel")):
                if source.args.get(name):
                    raise self.text.refused(construct, source)

    def _join(self, join: exp.Join) -> None:
        side, kind = join.side.upper(), join.kind.upper()
        if side in ("", "LEFT") and kind in ("SEMI", "ANTI"):
            self._beyond(f"joins of type '[LEFT_{kind}_JOIN]'", join, *_JOIN_WORDS)
        elif side:
            self._beyond(f"joins of type '[{side}_OUTER_JOIN]'", join, *_JOIN_WORDS)
        elif kind not in ("", "INNER", "CROSS") or join.method.upper() not in ("", "NATURAL"):
            name = " ".join(filter(None, (join.method, kind))).upper()
            raise self.text.refused(f"joins of type '[{name}]'", join, *_JOIN_WORDS)

    def _behind_commas(self, query: exp.Select) -> None:
        """Spark joins the tables behind a comma first. The tree has lost that order, which counts for these joins."""
        comma = False
        for join in query.args.get("joins") or ():
            comma = comma or _is_comma(join)
            if comma and join.side.upper() in ("RIGHT", "FULL"):
                construct = f"joins of type '[{join.side.upper()}_OUTER_JOIN]' behind a comma"
                raise self.text.refused(construct, join, *_JOIN_WORDS, instead="Put that join into parentheses.")

    def _grouping(self, query: exp.Select) -> None:
        group = query.args.get("group")
        calls = [node for node in _expressions(query) if isinstance(node, exp.AggFunc)]
        if group:
            self._beyond("GROUP BY", group, TokenType.GROUP_BY)
            for sets in group.find_all(exp.GroupingSets, exp.Cube, exp.Rollup):
                raise self.text.refused("GROUPING SETS, CUBE or ROLLUP", sets, TokenType.GROUP_BY)
        elif calls:
            self._beyond("aggregate functions", calls[0])
        for call in calls:
            if not isinstance(call, _GROUPED):
                raise self.text.refused(f"the aggregate function {self.text.word(call, name_of(call))!r}", call)
        distinct = query.args.get("distinct")
        if distinct:
            self._beyond("DISTINCT", query.expressions[0], TokenType.DISTINCT)

    def _expression(self, node: exp.Expr) -> None:
        if isinstance(node, exp.Query):
            correlated = "correlated " if _is_correlated(node) else ""
            raise self.text.refused(f"{correlated}subquery expressions", node, TokenType.SELECT)
        if makes_rows(node):
            raise self.text.refused(_TABLE_FUNCTION, node)
        if of_the_row(node):
            name = self.text.word(node, name_of(node))
            raise self.text.refused(
                f"the non-deterministic function {name!r}", node, instead="Remove it: each read would give other rows."
            )
        if isinstance(node, exp.Column) and "_metadata" in (part.name.lower() for part in node.parts):
            raise self.text.refused(
                "columns of file metadata", node, instead="Remove them: they change without a change of any row."
            )
        if isinstance(node, exp.Anonymous):
            name = str(node.name)
            named = isinstance(node.parent, exp.Dot) and node.parent.expression is node
            if named or not self.is_builtin(name.lower()):
                raise self.text.refused(f"the user function {name!r}", node)

    def _beyond(self, construct: str, node: exp.Expr, *words: TokenType) -> None:
        if not self.beyond:
            raise self.text.refused(construct, node, *words, instead=_BEYOND)


def _expressions(query: exp.Select) -> Iterator[exp.Expr]:
    """All nodes of a block's expressions, with only the root of each subquery."""
    parts = [*query.expressions, *(query.args.get(name) for name in ("where", "having", "group"))]
    parts += [value for join in joins_of(query) for value in (join.args.get("on"), *(join.args.get("using") or ()))]
    for part in filter(None, parts):
        yield from part.walk(prune=lambda node: isinstance(node, exp.Query))


def _is_comma(join: exp.Join) -> bool:
    """Whether the join is a comma. sqlglot looks for pivots behind each join that is written as one."""
    return join.kind.upper() == "CROSS" and "pivots" not in join.args


def _is_correlated(query: exp.Query) -> bool:
    """Whether a column in it is qualified by a table of an outer query."""
    own = {source.alias_or_name.lower() for block in queries_in(query) for source in _blocks_sources(block)}
    return any(column.table and column.table.lower() not in own for column in query.find_all(exp.Column))


def _blocks_sources(query: exp.Query) -> Iterator[exp.Expr]:
    if isinstance(query, exp.Select):
        yield from sources_of(query)
