"""CREATE TABLE … AS SELECT … FROM a stream: a table that is created once, then filled by a write like any other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.client.temporary_views import TemporaryViews
from tidemark.client.transaction import LakeTransaction
from tidemark.errors import NotADeltaTable, TableNotFound, TransactionNotFound
from tidemark.model.statements import TransactionKey
from tidemark.sql.names import sql_name
from tidemark.sql.text import compilation_error
from tidemark.streams.planning.stream_sql.tables import CREATED_FOR, CreatedTable
from tidemark.streams.worker.finish import finish
from tidemark.streams.worker.streams import open_transaction

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
    if _finishes(context, name, table, streams):
        return True
    if not _is_left_empty(context, name, table):
        if _exists(context, name):
            return _has_been_there(text, table)
        _create(context, table, read())
    filled = _is_left_empty(context, name, table) and fill(
        f"INSERT INTO {name} {table.query}", lambda: _is_left_empty(context, name, table)
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


def _finishes(context: ClientContext, name: str, table: CreatedTable, streams: Sequence[str]) -> bool:
    """Whether a run of the statement had submitted its INSERT and left it, and it is finished now. Raises StreamLocked
    while that run may be alive.
    """
    log = _own(context, name, table)
    if log is None:
        return False
    table_id = log.state().table_id
    for stream in streams:
        try:
            held = open_transaction(context.store, stream)
        except TransactionNotFound:
            continue
        if any(statement.target.table_id == table_id for statement in held.plan.statements):
            by = TransactionKey("client", context.store.new_id(), "finish")
            ended = finish(context.runtime, stream, by=by, owner=context.who)
            return ended is not None and ended.result is not None
    return False


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
    log = _own(context, name, table)
    return log is not None and log.head() == 0


def _own(context: ClientContext, name: str, table: CreatedTable) -> DeltaLog | None:
    """The log of the table, if this statement created it."""
    try:
        log = context.tables(name)
    except (TableNotFound, NotADeltaTable):
        return None
    return log if log.state().metadata.configuration.get(CREATED_FOR) == table.created_for else None


def _has_been_there(text: str, table: CreatedTable) -> bool:
    """No, if the text has IF NOT EXISTS; else raises SqlCompilationError."""
    if table.if_not_exists:
        return False
    raise compilation_error(text, table.name.span, f"Object '{table.name.text}' already exists.")
