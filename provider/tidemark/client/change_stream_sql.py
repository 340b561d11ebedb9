"""Change streams in `lake.sql`: their definition, their catalog views, and READ_ in either dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from tidemark.change_streams.driver.functions import drop_read_functions, register_read_functions
from tidemark.change_streams.planning import catalog
from tidemark.change_streams.planning.sql.parse import parse_change_stream_sql
from tidemark.change_streams.planning.sql.queries import (
    CatalogView,
    ChangeStreamMention,
    find_mentions,
    may_mention,
    with_mentions,
)
from tidemark.change_streams.planning.sql.statements import ChangeStreamStatement, DropChangeStream
from tidemark.change_streams.worker import defining
from tidemark.change_streams.worker.definitions import list_change_streams
from tidemark.change_streams.worker.statements import run_statement
from tidemark.client.lake_tables import lake_tables
from tidemark.client.sql_answers import status_answer
from tidemark.client.temporary_views import TemporaryViews
from tidemark.lake.log_paths import logs_root

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidemark.change_streams.model.change_streams import ChangeStream
    from tidemark.client.context import ClientContext

__all__ = ["define_change_stream", "with_change_streams"]

_STREAM = "CHANGE_STREAM_CATALOG STRING, CHANGE_STREAM_SCHEMA STRING, CHANGE_STREAM_NAME STRING"
_TABLE = "TABLE_CATALOG STRING, TABLE_SCHEMA STRING, TABLE_NAME STRING"
_Rows = Callable[[Iterable["ChangeStream"]], Sequence[Any]]
_VIEWS: Mapping[str, tuple[_Rows, str]] = {
    "CHANGE_STREAMS": (catalog.catalog_streams, f"{_STREAM}, `ALL` BOOLEAN"),
    "CHANGE_STREAM_TABLES": (catalog.catalog_tables, f"{_STREAM}, {_TABLE}, ALL_COLUMNS BOOLEAN"),
    "CHANGE_STREAM_COLUMNS": (catalog.catalog_columns, f"{_STREAM}, {_TABLE}, COLUMN_NAME STRING"),
    "CHANGE_STREAM_OPTIONS": (
        catalog.catalog_options,
        f"{_STREAM}, OPTION_NAME STRING, OPTION_TYPE STRING, OPTION_VALUE STRING",
    ),
}


def define_change_stream(context: ClientContext, text: str) -> DataFrame | None:
    """Run the statement, if it defines a change stream, and answer with a status. Raises what `Lake.sql` says."""
    statement = parse_change_stream_sql(text)
    return None if statement is None else status_answer(context.spark, _run(context, statement))


def _run(context: ClientContext, statement: ChangeStreamStatement) -> str:
    dropped = defining.find(context.store, statement.name.text) if isinstance(statement, DropChangeStream) else None
    done = run_statement(
        context.store,
        statement,
        tables=lake_tables(context, enable_row_tracking=True),
        logs=logs_root(context.paths.workspace),
        storage_options=context.options,
    )
    if dropped is not None:
        drop_read_functions(context.spark, dropped)
    return done


@contextmanager
def with_change_streams(context: ClientContext, text: str) -> Iterator[str]:
    """The text as Spark knows it: catalog views are temporary views, READ_ is registered. Good inside the context."""
    streams = list_change_streams(context.store) if may_mention(text) else ()
    mentions = find_mentions(text, [stream.name for stream in streams])
    with TemporaryViews(context.spark) as views:
        yield with_mentions(text, {mention: _ready(context, mention, streams, views) for mention in mentions})


def _ready(
    context: ClientContext, mention: ChangeStreamMention, streams: tuple[ChangeStream, ...], views: TemporaryViews
) -> str:
    if isinstance(mention, CatalogView):
        rows, columns = _VIEWS[mention.name]
        return views.of(context.spark.createDataFrame([astuple(row) for row in rows(streams)], columns))
    stream = next(one for one in streams if one.name.casefold() == mention.stream)
    known = defining.open_partitions(context.store, stream)
    register_read_functions(context.spark, stream, now=context.store.clock(), options=context.options, first=known)
    return f"{'read_json_' if mention.as_json else 'READ_'}{stream.name}"
