"""CREATE, ALTER and DROP CHANGE STREAM, as they are written in SQL, for the client and for a task."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from tidemark.change_streams.model.change_streams import ChangeStream
from tidemark.change_streams.planning.sql.statements import (
    ChangeStreamStatement,
    CreateChangeStream,
    DropChangeStream,
    SetChangeStreamFor,
    SetChangeStreamOptions,
)
from tidemark.change_streams.worker import defining, definitions
from tidemark.change_streams.worker.watching import LakeTables, tables_left_out
from tidemark.control.store import ControlStore
from tidemark.errors import ChangeStreamNotFound
from tidemark.lake.delta_log import DeltaLog

__all__ = ["run_statement"]

DONE = "Statement executed successfully."


def run_statement(
    store: ControlStore,
    statement: ChangeStreamStatement,
    *,
    tables: LakeTables,
    logs: str,
    storage_options: Mapping[str, str] | None = None,
) -> str:
    """The result of the statement, in words. With IF [NOT] EXISTS a second run changes nothing. Raises what `defining`
    does.
    """
    name, open_log = statement.name.text, partial(DeltaLog.open, options=storage_options)
    if isinstance(statement, CreateChangeStream):
        return _create(store, statement, tables, logs)
    if isinstance(statement, DropChangeStream):
        return _drop(store, statement, storage_options)
    if isinstance(statement, SetChangeStreamFor):
        altered = defining.alter(store, name, watch=statement.watch, options={}, tables=tables, open_log=open_log)
        return DONE + _left_out(store, altered, tables)
    if isinstance(statement, SetChangeStreamOptions):
        defining.alter(store, name, options=statement.options, tables=tables)
    else:
        definitions.suspend(store, name, open_log=open_log)
    return DONE


def _create(store: ControlStore, create: CreateChangeStream, tables: LakeTables, logs: str) -> str:
    name = create.name.text
    if create.if_not_exists and defining.find(store, name) is not None:
        return f"{name} already exists, statement succeeded."
    made = defining.create(
        store,
        name,
        watch=create.watch,
        options=create.options,
        tables=tables,
        logs=logs,
        if_not_exists=create.if_not_exists,
    )
    return f"Change stream {name} successfully created.{_left_out(store, made, tables)}"


def _left_out(store: ControlStore, stream: ChangeStream, tables: LakeTables) -> str:
    names = ", ".join(one.name for one in tables_left_out(store, stream, tables))
    return f" It cannot watch, and leaves out: {names}." if names else ""


def _drop(store: ControlStore, drop: DropChangeStream, storage_options: Mapping[str, str] | None) -> str:
    name = drop.name.text
    try:
        defining.drop(store, name, storage_options)
    except ChangeStreamNotFound:
        if not drop.if_exists:
            raise
        return f"Drop statement executed successfully ({name} already dropped)."
    return f"{name} successfully dropped."
