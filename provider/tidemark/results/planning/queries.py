"""The text of a query, taken apart: its tables, its functions, and the names that must be columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from itertools import pairwise

from sqlglot import Token, TokenType, exp

from tidemark.errors import InvalidArgument, StatementRefused
from tidemark.model.foreign_json import whole_number
from tidemark.results.model.answers import Miss, Why
from tidemark.results.planning.functions import BARE_WORDS, DATES, ORDERED, reason_against
from tidemark.results.planning.keys import digest_of
from tidemark.results.planning.qualifiers import full_qualifiers
from tidemark.sql.foreign_sql import SPARK, SqlNotUnderstood, tokens, tree_of, written
from tidemark.sql.functions import makes_rows, word_of_the_present
from tidemark.sql.identifiers import quoted
from tidemark.sql.statements import StatementKind, TableMention, parse_statement
from tidemark.sql.text import BLANK

__all__ = ["Query", "TablePoint", "TableUse", "digests_of", "normalised", "pinned", "read_query"]

_ROWS_OF_THEIR_OWN = frozenset(
    "range explode explode_outer posexplode posexplode_outer inline inline_outer stack json_tuple".split()  # noqa: SIM905
)
_NO_FUNCTIONS = frozenset(
    """
    all and any anti as between by case cross cube distinct else end escape except exists false filter for from full
    group grouping having in inner intersect interval is join lateral limit minus not null nulls offset
    on or order outer over partition pivot qualify recursive rlike rollup select semi sets setminus some sort
    tablesample table then true union unpivot using values varchar when where window with within
    """.split()  # noqa: SIM905 - a list of words
)
_UNITS = frozenset(
    "year quarter month week day dayofyear hour minute second millisecond microsecond".split()  # noqa: SIM905
)
_GENERATED = frozenset({"col", "key", "value", "pos", "id"})
_ORDERED_NODES = (exp.First, exp.FirstValue, exp.Last, exp.LastValue, exp.AnyValue)
_REMEMBERED = 256  # a text has one meaning, and dashboards repeat theirs
_UNPARSED = "it cannot be parsed"
_NO_QUERY = "it is not a query; use lake.sql for other statements"
_BEGINS = re.compile(BLANK + r"(?:\(|(?:select|with|values|table)\b)", re.DOTALL | re.IGNORECASE)
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class TablePoint:
    """The constant point of a time travel: a version, or a time as it is written."""

    version: int | None = None
    time: str | None = None


@dataclass(frozen=True)
class TableUse:
    """A table in the text, [start, end) with its time travel. `point`: None for the present. `takes_alias`: it has no
    alias, and its columns may be qualified by its name.
    """

    mention: TableMention
    start: int
    end: int
    point: TablePoint | None
    takes_alias: bool


@dataclass(frozen=True)
class Query:
    """A query that may be answered again. `dates`: the spans of `current_date`. `columns`: the first parts of names
    that must be columns, or aliases of `own`. `named_date`: whether the query itself calls something `current_date`.
    """

    text: str
    tree: exp.Expression
    uses: tuple[TableUse, ...]
    dates: tuple[tuple[int, int], ...]
    columns: frozenset[str]
    own: frozenset[str]
    named_date: bool = False

    def takes_date_for_column(self, of_tables: frozenset[str]) -> bool:
        """Whether `current_date` may be a column, which comes before the function without parentheses."""
        without = any(not self.text[start:end].endswith(")") for start, end in self.dates)
        return without and (self.named_date or not DATES.isdisjoint(of_tables))

    @property
    def names(self) -> tuple[str, ...]:
        """Each table's name once, in the order of the text."""
        return tuple(dict.fromkeys(use.mention.name for use in self.uses))

    @property
    def unaliased(self) -> frozenset[tuple[str, ...]]:
        """The names of the tables without an alias, in parts and lower case."""
        return frozenset(tuple(part.lower() for part in use.mention.parts) for use in self.uses if use.takes_alias)

    def no_column(self, of_tables: frozenset[str]) -> str | None:
        """A name that is no column of the tables and no alias, so that only the session may know it."""
        known = self.own | of_tables
        return next((name for name in sorted(self.columns) if name not in known), None)


@lru_cache(maxsize=_REMEMBERED)
def read_query(sql: str) -> Query | Miss:
    """The query, or the reason why its answer can never be reused. Raises InvalidArgument for another statement."""
    if "${" in sql:
        return Miss(Why.SESSION, "${…} is replaced by a setting of the session")
    try:
        statement = parse_statement(sql)
    except StatementRefused as error:
        if not str(error.facts["problem"]).startswith(_UNPARSED) or _BEGINS.match(sql) is None:
            raise InvalidArgument(argument="sql", value=sql, problem=_NO_QUERY) from error
        return Miss(Why.NOT_UNDERSTOOD, str(error.facts["problem"]))
    if statement.kind is not StatementKind.SELECT:
        raise InvalidArgument(argument="sql", value=sql, problem=_NO_QUERY)
    try:
        found, tree = tokens(statement.sql, SPARK), tree_of(statement.sql, SPARK)
        against = next(_problems(tree, found), None)
        bare = _places_without_alias(tree)
        uses = tuple(_use(mention, found, takes_alias=mention.start in bare) for mention in statement.mentions)
    except SqlNotUnderstood as error:
        return Miss(Why.NOT_UNDERSTOOD, f"the text cannot be parsed: {error}")
    if against is not None:
        return against
    if None in uses:
        return Miss(Why.TIME_TRAVEL, "the point of a time travel is not a constant")
    return Query(
        text=statement.sql,
        tree=tree,
        uses=tuple(use for use in uses if use is not None),
        dates=tuple(_dates(found)),
        columns=frozenset(_columns(tree)),
        own=frozenset(_own_names(tree)),
        named_date=not DATES.isdisjoint(_other_names(tree)),
    )


def normalised(text: str) -> str:
    """The text without comments, and with one blank between its words. Raises SqlNotUnderstood."""
    return " ".join(text[token.start : token.end + 1] for token in tokens(text, SPARK))


def digests_of(sql: str) -> frozenset[str]:
    """The digests under which an answer of the text may be kept: as it is, and normalised."""
    text = sql.strip().rstrip(";").rstrip()
    try:
        return frozenset({digest_of(text), digest_of(normalised(text))})
    except SqlNotUnderstood:
        return frozenset({digest_of(text)})


def pinned(query: Query, tables: Mapping[str, Callable[[TablePoint | None], str]], today: date | None) -> str:
    """The text with each table in place of its name, and with `today` for `current_date`. `tables`: name → the SQL of
    the table at a point. Columns keep the last part of their table's name only, which is its alias.
    """
    pieces = {(use.start, use.end): _of_use(use, tables[use.mention.name](use.point)) for use in query.uses}
    pieces |= {(one.start, one.end): "" for one in full_qualifiers(query.tree, query.unaliased)}
    if today is not None:
        pieces |= dict.fromkeys(query.dates, f"DATE'{today.isoformat()}'")
    text = query.text
    for start, end in sorted(pieces, reverse=True):
        text = text[:start] + pieces[start, end] + text[end:]
    return text


def _of_use(use: TableUse, sql: str) -> str:
    """The SQL of the table, under its old name if the text gives it no alias."""
    return f"{sql} AS {quoted(use.mention.parts[-1])}" if use.takes_alias else sql


def _problems(tree: exp.Expression, found: Sequence[Token]) -> Iterator[Miss]:
    yield from _problems_of_nodes(tree)
    calls = list(_calls(found, _with_columns(tree)))
    for name, at in calls:
        if name == "unix_timestamp" and not _is_empty_call(found, at):
            continue
        if name in ORDERED and _in_ordered_windows(tree) >= sum(one in ORDERED for one, _ in calls):
            continue
        against = reason_against(name)
        if against is not None:
            yield Miss(*against)
    for before, token in zip([None, *found], found, strict=False):
        word = token.text.lower()
        if word in BARE_WORDS and _is_word(token) and not (before and before.token_type is TokenType.DOT):
            why, text = reason_against(word) or (Why.SESSION, word)
            yield Miss(why, text)


def _problems_of_nodes(tree: exp.Expression) -> Iterator[Miss]:
    for node in tree.walk():
        if isinstance(node, exp.Parameter | exp.Placeholder | exp.SessionParameter):
            yield Miss(Why.SESSION, "the text has a variable or a parameter")
        elif isinstance(node, exp.TableSample):
            yield Miss(Why.NON_DETERMINISTIC, "TABLESAMPLE gives other rows each time")
        elif isinstance(node, exp.Table):
            yield from _problems_of_table(node)
        elif isinstance(node, exp.Column) and "_metadata" in (part.name.lower() for part in node.parts):
            yield Miss(Why.FILE_METADATA, "_metadata shows files, which change without a change of any row")
        elif (word := word_of_the_present(node)) is not None:
            yield Miss(Why.CLOCK, f"'{word}' as a date or a time is another one each time")
        elif isinstance(node, exp.QueryTransform):
            yield Miss(Why.FUNCTION, "TRANSFORM … USING runs a program, whose result may be another one each time")
        else:
            yield from _problems_of_function(node)


def _problems_of_function(node: exp.Expr) -> Iterator[Miss]:
    """For names that `_calls` does not see in the text."""
    if isinstance(node, exp.Anonymous) and (node.name.lower() in _NO_FUNCTIONS or not _WORD.fullmatch(node.name)):
        against = reason_against(node.name.lower())
        if against is not None:
            yield Miss(*against)
    elif isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
        yield Miss(Why.FUNCTION, f"{written(node, SPARK)[:40]} may be a user's function")


def _problems_of_table(table: exp.Table) -> Iterator[Miss]:
    if isinstance(table.this, exp.Identifier):
        return
    name = str(table.this.name or table.this.sql_name()).lower() if isinstance(table.this, exp.Func) else ""
    if name not in _ROWS_OF_THEIR_OWN and not makes_rows(table.this):
        yield Miss(Why.TABLE_FUNCTION, f"the table function {name or 'of the text'} may read other tables")


def _places_without_alias(tree: exp.Expression) -> frozenset[int]:
    """The places of tables that may have an alias, but have none; also of those with a time travel."""
    clauses = ("alias", "sample", "pivots", "partition")
    bare = (table for table in tree.find_all(exp.Table) if not any(table.args.get(name) for name in clauses))
    return frozenset(table.parts[0].meta["start"] for table in bare if isinstance(table.this, exp.Identifier))


def _use(mention: TableMention, found: Sequence[Token], *, takes_alias: bool) -> TableUse | None:
    """The table with its time travel; None if the point is not a constant."""
    after = next((at for at, token in enumerate(found) if token.start >= mention.end), len(found))
    words = [token.text.upper() for token in found[after : after + 5]]
    skipped = 1 if words[:1] == ["FOR"] else 0
    words = words[skipped:]
    travels = len(words) >= 3 and words[0] in ("VERSION", "TIMESTAMP", "SYSTEM_VERSION", "SYSTEM_TIME")
    if not travels or words[1:3] != ["AS", "OF"]:
        return TableUse(mention, mention.start, mention.end, None, takes_alias)
    if len(words) < 4 or not _ends_a_point(found, after + skipped + 4):
        return None
    token = found[after + skipped + 3]
    point = _point(words[0], token)
    return None if point is None else TableUse(mention, mention.start, token.end + 1, point, takes_alias)


def _point(word: str, token: Token) -> TablePoint | None:
    if word in ("VERSION", "SYSTEM_VERSION"):
        version = whole_number(token.text)
        return None if version is None else TablePoint(version=version)
    return TablePoint(time=token.text) if token.token_type is TokenType.STRING else None


def _ends_a_point(found: Sequence[Token], at: int) -> bool:
    """Whether the constant before the token is the whole expression."""
    return at >= len(found) or found[at].text[:1] not in set("+-*/|&^%:.")


def _with_columns(tree: exp.Expression) -> frozenset[str]:
    """The aliases of tables with a list of columns."""
    aliases = (node for node in tree.find_all(exp.TableAlias) if node.args.get("columns"))
    return frozenset(str(node.name).lower() for node in aliases)


def _calls(found: Sequence[Token], aliases: frozenset[str]) -> Iterator[tuple[str, int]]:
    """The words before a parenthesis that may be functions, and their places."""
    for at, (token, behind) in enumerate(pairwise(found)):
        word = token.text.lower()
        if behind.token_type is not TokenType.L_PAREN or token.token_type is TokenType.STRING:
            continue
        if _WORD.fullmatch(token.text) and word not in _NO_FUNCTIONS and not _has_columns(found, at, aliases):
            yield word, at


def _has_columns(found: Sequence[Token], at: int, aliases: frozenset[str]) -> bool:
    """Whether the word is the alias of a table, or the name of a query, with columns in parentheses."""
    words = [token.text.upper() for token in found[max(0, at - 2) : at]]
    if words[-1:] == ["AS"]:
        return True
    end = next((n for n in range(at + 2, len(found)) if found[n].token_type is TokenType.R_PAREN), len(found))
    is_list = all(token.token_type is TokenType.COMMA or _is_word(token) for token in found[at + 2 : end])
    behind = found[end + 1].text.upper() if end + 1 < len(found) else ""
    if words[-1:] in (["WITH"], ["RECURSIVE"]) or (words[-1:] == [","] and words[:1] == [")"]):
        return is_list and behind == "AS"
    if not is_list or not at or found[at].text.lower() not in aliases:
        return False
    return (_is_word(found[at - 1]) or found[at - 1].text == ")") and _follows_a_table(found[at - 1])


def _follows_a_table(before: Token) -> bool:
    """Whether an alias may follow the token: it is a name or ends a subquery."""
    return before.token_type in (TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN)


def _is_word(token: Token) -> bool:
    no_text = token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER)
    return token.token_type is TokenType.IDENTIFIER or (no_text and _WORD.fullmatch(token.text) is not None)


def _is_empty_call(found: Sequence[Token], at: int) -> bool:
    return at + 2 < len(found) and found[at + 2].token_type is TokenType.R_PAREN


def _in_ordered_windows(tree: exp.Expression) -> int:
    """The calls of `first` and its like in a window that has an order."""
    windows = (node.find_ancestor(exp.Window) for node in tree.find_all(*_ORDERED_NODES))
    return sum(window is not None and window.args.get("order") is not None for window in windows)


def _dates(found: Sequence[Token]) -> Iterator[tuple[int, int]]:
    for at, token in enumerate(found):
        before = found[at - 1].text.upper() if at else ""
        if token.text.lower() not in DATES or token.token_type is TokenType.IDENTIFIER or before in (".", "AS"):
            continue
        behind = [one.token_type for one in found[at + 1 : at + 3]]
        called = behind == [TokenType.L_PAREN, TokenType.R_PAREN]
        if called or token.token_type is TokenType.CURRENT_DATE:
            yield token.start, found[at + 2 * called].end + 1


def _columns(tree: exp.Expression) -> Iterator[str]:
    for column in tree.find_all(exp.Column):
        first = column.parts[0] if column.parts else None
        if isinstance(first, exp.Identifier):
            yield first.name.lower()


def _other_names(tree: exp.Expression) -> Iterator[str]:
    """The names that the query defines, but for the date under its own name."""
    dates = {id(node) for node in tree.find_all(exp.Alias) if isinstance(node.this, exp.CurrentDate)}
    for node in tree.walk():
        if id(node) not in dates:
            yield from _names_by(node)


def _own_names(tree: exp.Expression) -> Iterator[str]:
    """The names that the query defines, and the parts of its tables' names."""
    yield from _UNITS
    for node in tree.walk():
        yield from _names_by(node)


def _names_by(node: exp.Expr) -> Iterator[str]:
    if isinstance(node, exp.Alias | exp.TableAlias | exp.PropertyEQ):
        yield node.alias.lower() if isinstance(node, exp.Alias) else str(node.name).lower()
    if isinstance(node, exp.TableAlias | exp.Aliases):
        columns = node.args.get("columns") or node.args.get("expressions") or ()
        yield from (column.name.lower() for column in columns)
    elif isinstance(node, exp.Lambda):
        yield from (argument.name.lower() for argument in node.expressions)
    elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
        yield from (part.name.lower() for part in node.parts)
    elif isinstance(node, exp.Func) and makes_rows(node):
        yield from _GENERATED
