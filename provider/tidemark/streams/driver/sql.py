"""SQL: one INSERT, MERGE, UPDATE, DELETE or INSERT OVERWRITE, with streams and tables known by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidemark.delivery.driver.prepared import PreparedWrite
from tidemark.errors import StatementRefused
from tidemark.model.statements import Statement
from tidemark.sql.statements import ParsedStatement, parse_write, path_name, splice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemark.streams.driver.pinned_streams import PinnedStreams

__all__ = ["prepare_sql", "query_text", "require_analysed", "require_understood"]


def prepare_sql(session: SparkSession, statement: Statement, sql: str, streams: PinnedStreams) -> PreparedWrite:
    """Put views and paths in place of names and have Spark analyse the statement, without running it.

    A name that is a stream of the transaction means the stream. Raises StatementRefused with Spark's own words.
    """
    text = require_analysed(session, sql, streams, statement.write.tables, statement.target.path)
    return PreparedWrite(run=lambda: _run(session, text))


def require_analysed(
    session: SparkSession, sql: str, streams: PinnedStreams, tables: Mapping[str, str], target_path: str
) -> str:
    """The statement as Spark is to run it, analysed. Raises StatementRefused with Spark's own words."""
    parsed = parse_write(sql)
    if parsed.target is None:
        raise StatementRefused(problem="it has no target", sql=sql)
    text = query_text(parsed, streams, {**tables, parsed.target.name: target_path})
    require_understood(session, text, sql)
    return text


def query_text(
    parsed: ParsedStatement, streams: PinnedStreams, tables: Mapping[str, str], ready: Mapping[str, str] | None = None
) -> str:
    """The statement as Spark is to run it: streams are temporary views of the session, tables are read by path.
    `ready`: names that are put in place of others as they are.
    """
    folded = {name.lower() for name in streams.names}
    target = None if parsed.target is None else parsed.target.name
    views = {n: streams.view(n) for n in parsed.names if n.lower() in folded and n != target}
    return splice(parsed, {**{name: path_name(path) for name, path in tables.items()}, **(ready or {}), **views})


def _run(session: SparkSession, text: str) -> None:
    session.sql(text)


def require_understood(session: SparkSession, text: str, sql: str) -> None:
    """Spark can run the `text`, which was made of the user's `sql`; nothing is run. Raises StatementRefused in Spark's
    words.
    """
    lines = [row[0] for row in session.sql("EXPLAIN " + text).collect()]
    if lines and lines[0].startswith("Error occurred during query planning"):
        raise StatementRefused(problem=lines[1] if len(lines) > 1 else lines[0], sql=sql)
