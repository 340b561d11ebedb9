"""CREATE TABLE … AS SELECT … FROM a stream: a table that is created once, then filled by a write like any other."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tidemark.client.temporary_views import TemporaryViews
from tidemark.client.transaction import LakeTransaction
from tidemark.errors import NotADeltaTable, TableNotFound
from tidemark.model.statements import TransactionKey
from tidemark.sql.names import sql_name
from tidemark.streams.planning.stream_sql.tables import CreatedTable, already_exists
from tidemark.streams.worker.created_tables import finish_left, is_left_empty, own_log

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame

    from tidemark.client.context import ClientContext
    from tidemark.lake.delta_log import DeltaLog

__all__ = ["create_and_fill", "fill_once"]


def create_and_fill(
    context: ClientContext,
    text: str,
    table: CreatedTable,
    streams: Sequence[str],
    *,
    read: Callable[[], DataFrame],
    fill: Callable[[str, Callable[[], bool]], bool],
) -> bool:
    """Create the table without rows, with the columns of its query, then insert the query's rows; both happen once.

    `read` runs the query, which names `streams`; `fill` is `fill_once`. A second run after a failure finds its own
    table, and finishes what the first has begun, or fills the empty table. Answers no if the table exists and the text
    has IF NOT EXISTS: no stream moves then. Raises SqlCompilationError for a table that exists, and what `fill` raises.
    """
    name = sql_name(table.name)
    opened = partial(context.tables, name)
    if _finishes(context, opened, table, streams):
        return True
    if not is_left_empty(opened, table):
        if _exists(context, name):
            return _has_been_there(text, table)
        _create(context, table, read())
    filled = is_left_empty(opened, table) and fill(
        f"INSERT INTO {name} {table.query}", partial(is_left_empty, opened, table)
    )
    return filled or _has_been_there(text, table)  # somebody else was quicker


def fill_once(context: ClientContext, insert: str, still: Callable[[], bool]) -> bool:
    """Run the INSERT as a transaction, if its table is `still` to be filled once the streams are held. A run that held
    them before may have filled it. Raises what the transaction raises.
    """
    key = TransactionKey("client", context.store.new_id(), "transaction")
    with LakeTransaction(context, key, checks=False) as transaction:
        transaction.sql(insert)
        wanted = still()
        if not wanted:
            transaction.rollback()
    return wanted


def _finishes(
    context: ClientContext, opened: Callable[[], DeltaLog], table: CreatedTable, streams: Sequence[str]
) -> bool:
    """Whether a run of the statement had submitted its INSERT and left it, and it is finished now. Raises StreamLocked
    while that run may be alive.
    """
    log = own_log(opened, table)
    if log is None:
        return False
    by = TransactionKey("client", context.store.new_id(), "finish")
    return finish_left(context.runtime, log, streams, by=by, owner=context.who) is not None


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


def _has_been_there(text: str, table: CreatedTable) -> bool:
    """No, if the text has IF NOT EXISTS; else raises SqlCompilationError."""
    if table.if_not_exists:
        return False
    raise already_exists(text, table)
