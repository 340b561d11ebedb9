"""Change streams in `lake.sql`: their definition, their catalog views, and READ_ in either dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from tidemark.client.lake_tables import lake_tables
from tidemark.client.sql_answers import status_answer
from tidemark.client.temporary_views import TemporaryViews
from tidemark.engine.change_streams.functions import register_read_functions
from tidemark.lake.change_logs import logs_root
from tidemark.planning.change_stream_sql.parse import parse_change_stream_sql
from tidemark.planning.change_stream_sql.queries import (
    CatalogView,
    ChangeStreamMention,
    find_mentions,
    may_mention,
    with_mentions,
)
from tidemark.planning.change_stream_sql.statements import (
    ChangeStreamStatement,
    CreateChangeStream,
    DropChangeStream,
    SetChangeStreamFor,
    SetChangeStreamOptions,
    SuspendChangeStream,
)
from tidemark.planning.change_streams import catalog
from tidemark.transactions.change_streams import defining
from tidemark.transactions.change_streams.definitions import list_change_streams

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidemark.client.lake import Lake
    from tidemark.client.surroundings import Surroundings
    from tidemark.model.change_streams import ChangeStream

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


def define_change_stream(lake: Lake, around: Surroundings, text: str) -> DataFrame | None:
    """Run the statement, if it defines a change stream, and answer with a status. Raises what `Lake.sql` says."""
    statement = parse_change_stream_sql(text)
    return None if statement is None else status_answer(around.spark, _run(lake, around, statement))


def _run(lake: Lake, around: Surroundings, statement: ChangeStreamStatement) -> str:
    name, store = statement.name.text, around.store
    if isinstance(statement, CreateChangeStream):
        kept = statement.if_not_exists and defining.find(store, name) is not None
        defining.create(
            store,
            name,
            watch=statement.watch,
            keys=None,
            options=statement.options,
            tables=lake_tables(around, enable_row_tracking=True),
            logs=logs_root(around.places.workspace),
            if_not_exists=statement.if_not_exists,
        )
        return f"{name} already exists, statement succeeded." if kept else f"Change stream {name} successfully created."
    if isinstance(statement, DropChangeStream):
        lake.drop_change_stream(name, if_exists=statement.if_exists)
        return f"{name} successfully dropped."
    if isinstance(statement, SuspendChangeStream):
        lake.suspend_change_stream(name)
    else:
        watch = statement.watch if isinstance(statement, SetChangeStreamFor) else None
        options = statement.options if isinstance(statement, SetChangeStreamOptions) else {}
        tables = lake_tables(around, enable_row_tracking=True)
        defining.alter(store, name, watch=watch, keys=None, options=options, tables=tables)
    return "Statement executed successfully."


@contextmanager
def with_change_streams(around: Surroundings, text: str) -> Iterator[str]:
    """The text as Spark knows it: catalog views are temporary views, READ_ is registered. Good inside the context."""
    streams = list_change_streams(around.store) if may_mention(text) else ()
    mentions = find_mentions(text, [stream.name for stream in streams])
    with TemporaryViews(around.spark) as views:
        yield with_mentions(text, {mention: _ready(around, mention, streams, views) for mention in mentions})


def _ready(
    around: Surroundings, mention: ChangeStreamMention, streams: tuple[ChangeStream, ...], views: TemporaryViews
) -> str:
    if isinstance(mention, CatalogView):
        rows, columns = _VIEWS[mention.name]
        return views.of(around.spark.createDataFrame([astuple(row) for row in rows(streams)], columns))
    stream = next(one for one in streams if one.name.casefold() == mention.stream)
    known = defining.open_partitions(around.store, stream)
    register_read_functions(around.spark, stream, options=around.options, first=known)
    return f"{'read_json_' if mention.as_json else 'READ_'}{stream.name}"
