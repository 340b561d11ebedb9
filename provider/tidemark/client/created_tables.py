"""CREATE TABLE … AS SELECT … FROM a stream: a table that is created once, then filled by a write like any other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.client.temporary_views import TemporaryViews
from tidemark.errors import NotADeltaTable, SqlCompilationError, TableNotFound
from tidemark.sql.names import sql_name
from tidemark.sql.text import compilation_error
from tidemark.streams.planning.stream_sql.tables import CREATED_FOR, CreatedTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from tidemark.client.context import ClientContext

__all__ = ["create_and_fill"]


def create_and_fill(
    context: ClientContext,
    text: str,
    table: CreatedTable,
    *,
    read: Callable[[], DataFrame],
    fill: Callable[[str], DataFrame],
) -> DataFrame | None:
    """Create the table without rows, with the columns of its query, then insert the query's rows; both happen once.

    `read` runs the query, `fill` an INSERT as a transaction. A second run after a failure finds its own empty table and
    fills it. Answers None if the table exists and the text has IF NOT EXISTS: the stream is not read then. Raises
    SqlCompilationError for a table that exists, and what `fill` raises.
    """
    name = sql_name(table.name)
    if not _is_left_empty(context, name, table):
        if _exists(context, name):
            if table.if_not_exists:
                return None
            raise _already_exists(text, table)
        _create(context, table, read())
        if not _is_left_empty(context, name, table):  # somebody else was quicker
            raise _already_exists(text, table)
    return fill(f"INSERT INTO {name} {table.query}")


def _create(context: ClientContext, table: CreatedTable, rows: DataFrame) -> None:
    with TemporaryViews(context.spark) as views:
        context.spark.sql(f"{table.head} AS SELECT * FROM {views.of(rows.limit(0))}")


def _exists(context: ClientContext, name: str) -> bool:
    try:
        context.tables.locate(name)
    except TableNotFound:
        return False
    except NotADeltaTable:
        return True
    return True


def _is_left_empty(context: ClientContext, name: str, table: CreatedTable) -> bool:
    """Whether the table is the one that this statement created, and has nothing yet."""
    try:
        log = context.tables(name)
    except (TableNotFound, NotADeltaTable):
        return False
    return log.head() == 0 and log.state().metadata.configuration.get(CREATED_FOR) == table.created_for


def _already_exists(text: str, table: CreatedTable) -> SqlCompilationError:
    return compilation_error(text, table.name.span, f"Object '{table.name.text}' already exists.")
