"""SQL statements as values: their kind, the tables that they name, and the positions of the names in the text.

Names are replaced by position and the rest of the text is kept, so Spark runs the user's own text. sqlglot parses it in
the Databricks dialect, which includes Spark's own SQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from sqlglot import exp

from tidemark.errors import StatementRefused
from tidemark.sql.foreign_sql import SPARK, SqlNotUnderstood, trees
from tidemark.sql.identifiers import quoted, spelled

__all__ = [
    "ParsedStatement",
    "StatementKind",
    "TableMention",
    "parse_statement",
    "parse_write",
    "path_name",
    "splice",
    "with_quoted_metadata_columns",
]


_SEVERAL = re.compile(r"[./`]")


class StatementKind(StrEnum):
    """The kinds of statements, by their effect on the target."""

    SELECT = "select"  # reads only: no target
    INSERT = "insert"
    INSERT_OVERWRITE = "insert_overwrite"
    MERGE = "merge"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True)
class TableMention:
    """A table name in a statement: its parts without quotes, and its place [start, end) in the text.

    `takes_alias`: the name has no alias and may have one. Without an alias, columns qualified by the old name would be
    unknown after a replacement.
    """

    parts: tuple[str, ...]
    start: int
    end: int
    takes_alias: bool

    @property
    def name(self) -> str:
        """`schema.table`, or ``delta.`/path` `` for a path. A catalog's name has backticks where needed. So has another
        one with a part that would be read as several, or as a path.
        """
        if len(self.parts) == 2 and self.parts[0].lower() == "delta":
            return path_name(self.parts[1])
        if len(self.parts) == 2:
            return ".".join(quoted(part) if _SEVERAL.search(part) else part for part in self.parts)
        return ".".join(map(spelled, self.parts)) if len(self.parts) > 2 else self.parts[0]


@dataclass(frozen=True)
class ParsedStatement:
    """A statement, its target (None for SELECT) and all its tables, with the target, in text order."""

    kind: StatementKind
    sql: str
    target: TableMention | None
    mentions: tuple[TableMention, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Each name once, in text order."""
        return tuple(dict.fromkeys(mention.name for mention in self.mentions))


def path_name(path: str) -> str:
    """The SQL name of the Delta table at `path`."""
    return "delta." + quoted(path)


def parse_write(sql: str) -> ParsedStatement:
    """A statement that may be part of a transaction, parsed.

    It is an INSERT INTO, INSERT OVERWRITE, MERGE INTO, UPDATE or DELETE with one target. Raises StatementRefused for
    anything else, since Delta could not make it happen once.
    """
    parsed = parse_statement(sql)
    if parsed.kind is StatementKind.SELECT:
        raise StatementRefused(problem="a SELECT writes nothing", sql=sql)
    return parsed


def parse_statement(sql: str) -> ParsedStatement:
    """A write (see `parse_write`) or a query, parsed. Raises StatementRefused for anything else."""
    text = with_quoted_metadata_columns(sql.strip().rstrip(";").rstrip())
    tree = _parse_one(text, sql)
    kind = _kind(tree, sql)
    target = None if kind is StatementKind.SELECT else _target(tree, sql)
    found = [_mention(table, is_target=table is target) for table in tree.find_all(exp.Table) if _names_a_table(table)]
    mentions = tuple(sorted(found, key=lambda mention: mention.start))
    return ParsedStatement(kind, text, None if target is None else _mention(target, is_target=True), mentions)


def splice(statement: ParsedStatement, replacements: Mapping[str, str]) -> str:
    """The text with the named tables replaced by SQL names that are ready to use.

    Names match exactly, else ignoring case. If columns may be qualified by the old name, its last part becomes the
    alias.
    """
    text = statement.sql
    for mention in reversed(statement.mentions):
        replacement = _lookup(mention.name, replacements)
        if replacement is not None:
            alias = f" AS {quoted(mention.parts[-1])}" if mention.takes_alias else ""
            text = text[: mention.start] + replacement + alias + text[mention.end :]
    return text


_TOKENS = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/"""
    r"""|(?P<bare>(?<![\w$])METADATA\$(?:ACTION|ISUPDATE|ROW_ID|FILENAME|COMMIT_VERSION|COMMIT_TIMESTAMP)(?![\w$]))""",
    re.DOTALL | re.IGNORECASE,
)


def with_quoted_metadata_columns(sql: str) -> str:
    """The text with METADATA$ columns in backticks, since Spark's plain identifiers have no dollar sign."""
    return _TOKENS.sub(lambda token: quoted(token["bare"].upper()) if token["bare"] else token[0], sql)


def _without_unparsed_clauses(text: str) -> str:
    """The text with blanks for clauses that sqlglot does not know and that have no table name. Positions are kept."""
    return re.sub(
        r"(?<=MERGE)\s+WITH\s+SCHEMA\s+EVOLUTION\b", lambda found: " " * len(found[0]), text, flags=re.IGNORECASE
    )


def _parse_one(text: str, sql: str) -> exp.Expression:
    try:
        found = trees(_without_unparsed_clauses(text), SPARK)
    except SqlNotUnderstood as error:
        raise StatementRefused(problem=f"it cannot be parsed: {error}", sql=sql) from error
    if len(found) != 1:
        raise StatementRefused(problem=f"one statement is needed, not {len(found)}", sql=sql)
    return found[0]


def _kind(tree: exp.Expression, sql: str) -> StatementKind:
    if isinstance(tree, exp.Insert):
        return StatementKind.INSERT_OVERWRITE if tree.args.get("overwrite") else StatementKind.INSERT
    for kind, nodes in _KINDS.items():
        if isinstance(tree, nodes):
            return kind
    if isinstance(tree, exp.Create):
        raise StatementRefused(
            problem="CREATE … AS SELECT cannot be part of a transaction; create the target first, then INSERT", sql=sql
        )
    raise StatementRefused(
        problem="only INSERT INTO, INSERT OVERWRITE, MERGE INTO, UPDATE and DELETE can be made to happen once", sql=sql
    )


_KINDS: Mapping[StatementKind, tuple[type[exp.Expression], ...]] = {
    StatementKind.MERGE: (exp.Merge,),
    StatementKind.UPDATE: (exp.Update,),
    StatementKind.DELETE: (exp.Delete,),
    StatementKind.SELECT: (exp.Select, exp.SetOperation, exp.Subquery),
}


def _target(tree: exp.Expression, sql: str) -> exp.Table:
    target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    if isinstance(target, exp.Table) and isinstance(target.this, exp.Identifier):
        return target
    raise StatementRefused(problem="its target is not a table", sql=sql)


def _mention(table: exp.Table, *, is_target: bool) -> TableMention:
    places = [part.meta for part in table.parts]
    clauses = any(table.args.get(name) for name in ("alias", "version", "when", "sample", "pivots", "partition"))
    insert_target = is_target and isinstance(table.find_ancestor(exp.Insert), exp.Insert)
    return TableMention(
        parts=tuple(part.name for part in table.parts),
        start=places[0]["start"],
        end=places[-1]["end"] + 1,
        takes_alias=not clauses and not insert_target and table.arg_key != "source",
    )


def _names_a_table(table: exp.Table) -> bool:
    if not isinstance(table.this, exp.Identifier):
        return False
    return len(table.parts) > 1 or table.name.lower() not in set(_visible_ctes(table))


def _visible_ctes(node: exp.Expression) -> Iterator[str]:
    """Names that a WITH above `node` defines. Inside a definition only earlier ones count, unless RECURSIVE."""
    inside: object = node
    above = node.parent
    while above is not None:
        clause = above if isinstance(above, exp.With) else above.args.get("with_")
        if isinstance(clause, exp.With):
            names = [cte.alias.lower() for cte in clause.expressions]
            own = next((place for place, cte in enumerate(clause.expressions) if cte is inside), None)
            yield from names if own is None else names[: own + bool(clause.args.get("recursive"))]
            if own is not None:
                above = above.parent  # the statement of this WITH, whose names are done
                if above is None:
                    return
        inside, above = above, above.parent


def _lookup(name: str, replacements: Mapping[str, str]) -> str | None:
    if name in replacements:
        return replacements[name]
    folded = [value for key, value in replacements.items() if key.lower() == name.lower()]
    return folded[0] if len(folded) == 1 else None
