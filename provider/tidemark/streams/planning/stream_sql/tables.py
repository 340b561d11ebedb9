"""The table statements that the source system words differently than Spark: made for Delta, their rows tracked from
birth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise

from sqlglot import Token, exp

from tidemark.errors import SqlCompilationError, StatementRefused
from tidemark.sql.foreign_sql import SOURCE, SPARK, SqlNotUnderstood, trees, written
from tidemark.sql.names import sql_name
from tidemark.sql.text import Cursor, SqlName, compilation_error

__all__ = ["CREATED_FOR", "CreatedTable", "already_exists", "created_table", "head_at", "table_statement"]

ROW_TRACKING = "delta.enableRowTracking"
RETENTION = "delta.deletedFileRetentionDuration"
DEFAULTS = "delta.feature.allowColumnDefaults"
CREATED_FOR = "tidemark.createdFor"  # a table property: the statement that created it, as a digest
TRANSLATED = ("CHANGE_TRACKING", "DATA_RETENTION_TIME_IN_DAYS", "MAX_DATA_EXTENSION_TIME_IN_DAYS")


@dataclass(frozen=True)
class CreatedTable:
    """CREATE TABLE … AS SELECT. `head`: the text before AS, in Spark's words, with IF NOT EXISTS and the property
    CREATED_FOR. `query`: the text behind AS.
    """

    name: SqlName
    head: str
    query: str
    created_for: str
    if_not_exists: bool


def created_table(text: str) -> CreatedTable | None:
    """The parts of CREATE TABLE … AS SELECT; None for other statements.

    Raises SqlCompilationError for OR REPLACE and for a list of columns, which have no form that can be repeated. Raises
    it also for a name of more than three parts, and for another format than Delta, which no transaction can write.
    """
    cursor = Cursor(text)
    query = _query(cursor.tokens)
    if query is None or not cursor.takes("CREATE"):
        return None
    replaces = cursor.takes("OR", "REPLACE")
    cursor.takes("TRANSIENT")
    if not cursor.takes("TABLE"):
        return None
    if replaces:
        raise cursor.fails("OR REPLACE cannot read a stream: drop the table first, or use INSERT OVERWRITE")
    if_not_exists = cursor.takes("IF", "NOT", "EXISTS")
    name = cursor.name("the name of a table")
    if cursor.sees("."):
        raise cursor.fails("a name of more than three parts is not allowed here")
    if cursor.sees("("):
        raise cursor.fails("a list of columns is not allowed here: name the columns in the query")
    created_for = sha256(text.strip().rstrip(";").encode()).hexdigest()[:32]
    understood = _with_property(text, query, created_for)
    if understood is None:
        raise cursor.fails("this clause is not allowed before AS SELECT", name.span)
    head, form = understood
    if form != "delta":
        raise cursor.fails(f"a table of the format {form} cannot take a stream, only one of Delta", name.span)
    return CreatedTable(name, head, text[query:].strip().rstrip(";")[2:].strip(), created_for, if_not_exists)


def head_at(table: CreatedTable, path: str) -> str:
    """The text before AS for a table at `path` in place of its name. Raises StatementRefused for a LOCATION."""
    (tree,) = trees(table.head, SPARK)
    if tree.find(exp.LocationProperty) is not None:
        problem = "the name says where the table is; leave LOCATION out, or give the path as the name: delta.`/path`"
        raise StatementRefused(problem=problem, sql=table.head)
    names = exp.Table(this=exp.to_identifier(path, quoted=True), db=exp.to_identifier("delta"))
    tree.set("this", names)
    return written(tree, SPARK)


def already_exists(text: str, table: CreatedTable) -> SqlCompilationError:
    """The error of the statement `text` if its table exists and is not its own."""
    return compilation_error(text, table.name.span, f"Object '{table.name.text}' already exists.")


def _with_property(text: str, query: int, created_for: str) -> tuple[str, str] | None:
    """The text before the query, as Spark's, with the property and a format; and the format. None if it cannot be
    parsed.
    """
    head = _create(Cursor(text[:query])) or text[:query]
    try:
        (tree,) = trees(head, SPARK)
    except (SqlNotUnderstood, ValueError):
        return None
    if not isinstance(tree, exp.Create):
        return None
    properties = tree.args.get("properties") or exp.Properties(expressions=[])
    key, value = exp.Literal.string(CREATED_FOR), exp.Literal.string(created_for)
    properties.append("expressions", exp.Property(this=key, value=value))
    form = properties.find(exp.FileFormatProperty)
    if form is None:
        form = exp.FileFormatProperty(this=exp.Var(this="delta"))
        properties.set("expressions", [form, *properties.expressions])
    tree.set("properties", properties)
    tree.set("exists", True)
    return written(tree, SPARK), str(form.name).casefold()


def table_statement(text: str) -> str | None:
    """The statement as Spark and Delta understand it; None where Spark is to have it as it is.

    CREATE TABLE without USING makes a Delta table with row tracking, and its columns' types are translated.
    DATA_RETENTION_TIME_IN_DAYS is how long Delta keeps files. ALTER TABLE … SET CHANGE_TRACKING turns row tracking on
    or off. TRUNCATE TABLE deletes all rows. CREATE TABLE … CLONE is a shallow clone (R93).
    """
    try:
        cursor = Cursor(text)
    except SqlCompilationError:
        return None
    if cursor.sees("ALTER", "TABLE"):
        return _change_tracking(cursor)
    if cursor.takes("TRUNCATE", "TABLE"):
        return None if cursor.sees("IF", "EXISTS") else f"DELETE FROM {text[cursor.span.start :]}"
    return _clone(cursor) or _create(cursor)


def _change_tracking(cursor: Cursor) -> str | None:
    cursor.needs("ALTER", "TABLE")
    try:
        table = cursor.name("the name of a table")
        if not cursor.takes("SET", "CHANGE_TRACKING"):
            return None
        state = str(cursor.flag()).lower()
        cursor.end()
    except SqlCompilationError:
        return None
    return f"ALTER TABLE {sql_name(table)} SET TBLPROPERTIES ('{ROW_TRACKING}' = '{state}')"


def _clone(cursor: Cursor) -> str | None:
    try:
        cursor.needs("CREATE")
        cursor.takes("OR", "REPLACE")
        cursor.takes("TRANSIENT")
        cursor.needs("TABLE")
        cursor.takes("IF", "NOT", "EXISTS")
        cursor.name("the name of a table")
    except SqlCompilationError:
        return None
    at = cursor.span.start
    return f"{cursor.text[:at]}SHALLOW {cursor.text[at:]}" if cursor.sees("CLONE") else None


def _create(cursor: Cursor) -> str | None:
    words = [token.text.upper() for token in cursor.tokens]
    starts = (["CREATE", "TABLE"], ["CREATE", "OR", "REPLACE", "TABLE"], ["CREATE", "TRANSIENT", "TABLE"])
    begins = any(words[: len(start)] == start for start in (*starts, ["CREATE", "OR", "REPLACE", "TRANSIENT", "TABLE"]))
    query = _query(cursor.tokens)
    head = cursor.text[:query] if query is not None else cursor.text
    if not begins or "USING" in words[: len(Cursor(head).tokens)]:
        return None
    tree = _parsed(head)
    if tree is None:
        return None
    try:
        made = written(_for_delta(tree), SPARK)
    except SqlNotUnderstood:
        return None
    return made if query is None else f"{made} {cursor.text[query:]}"


def _query(tokens: Sequence[Token]) -> int | None:
    """The position at which AS and the query begin, outside parentheses."""
    depth = 0
    for token, coming in pairwise(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0 and token.text.upper() == "AS" and coming.text.upper() in ("SELECT", "WITH", "(", "VALUES"):
            return token.start
    return None


def _parsed(head: str) -> exp.Create | None:
    try:
        found = trees(head.rstrip().rstrip(";"), SOURCE)
    except SqlNotUnderstood:
        return None
    tree = found[0] if len(found) == 1 else None
    plain = isinstance(tree, exp.Create) and not tree.args.get("clone") and not tree.find(exp.LikeProperty)
    return tree if plain and isinstance(tree, exp.Create) else None


def _for_delta(tree: exp.Create) -> exp.Create:
    properties = tree.args.get("properties")
    given = list(properties.expressions) if isinstance(properties, exp.Properties) else []
    settings = {ROW_TRACKING: "true", **_settings(given), **_without_odd_columns(tree)}
    kept = [item for item in given if not _has_its_own_word(item)]
    first = 0 if not any(isinstance(item, exp.FileFormatProperty) for item in kept) else len(kept)
    kept.insert(first, exp.FileFormatProperty(this=exp.Var(this="delta")))  # Spark wants it before PARTITIONED BY
    kept += [exp.Property(this=exp.Literal.string(key), value=exp.Literal.string(to)) for key, to in settings.items()]
    tree.set("properties", exp.Properties(expressions=kept))
    return tree


def _settings(given: Sequence[exp.Expression]) -> dict[str, str]:
    """Properties of the table in Delta's words."""
    values = {str(item.name).upper(): item.args.get("value") for item in given}
    tracking, retention = values.get("CHANGE_TRACKING"), values.get("DATA_RETENTION_TIME_IN_DAYS")
    found = {}
    if isinstance(tracking, exp.Boolean):
        found[ROW_TRACKING] = str(tracking.this).lower()
    if isinstance(retention, exp.Literal):
        found[RETENTION] = f"interval {retention.name} days"
    return found


def _has_its_own_word(item: exp.Expression) -> bool:
    """Whether Delta says the property in another way, or not at all."""
    return isinstance(item, exp.TransientProperty) or str(item.name).upper() in TRANSLATED


def _without_odd_columns(tree: exp.Create) -> dict[str, str]:
    """Take out of the columns what Delta has no word for, and answer with what they need of the table."""
    for kind in tree.find_all(exp.DataType):
        if kind.is_type(*exp.DataType.TEMPORAL_TYPES):
            kind.set("expressions", [])  # Spark's times have no precision to choose
    defaults = [one for one in tree.find_all(exp.ColumnConstraint) if isinstance(one.kind, exp.DefaultColumnConstraint)]
    values = [constraint for constraint in defaults if not isinstance(constraint.kind.this, exp.Null)]
    for constraint in defaults:
        if constraint not in values:
            constraint.pop()
    return {DEFAULTS: "supported"} if values else {}
