"""The histories of a table's channels as DataFrames, and in queries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tidemark.channels.planning.history import HISTORY_DAY
from tidemark.channels.planning.sql_views import History, find_histories
from tidemark.client.temporary_views import TemporaryViews
from tidemark.errors import TableNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.own_tables import HISTORY_SUFFIX
from tidemark.sql.statements import path_name
from tidemark.sql.text import exchanged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidemark.client.context import ClientContext

__all__ = ["channel_history", "file_migrations", "with_histories"]

_COUNTS = ("rows_inserted", "rows_parsed", "rows_error_count")
_MIGRATED = {
    "files_removed": "numRemovedFiles",
    "bytes_removed": "numRemovedBytes",
    "files_added": "numAddedFiles",
    "bytes_added": "numAddedBytes",
}


def channel_history(context: ClientContext, table: str) -> DataFrame:
    """A row for each channel and minute with commits. Raises TableNotFound if there is no history of the table.

    Counts are those since the row before; NULL if that one is not kept any more.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    uri, _ = context.tables.locate(table)
    place = uri + HISTORY_SUFFIX
    try:
        DeltaLog.open(place, context.options)
    except TableNotFound:
        hint = "A client of channels writes it, a minute after its first commit or at its end."
        raise TableNotFound(path=place, hint=hint) from None
    kept = context.spark.read.format("delta").load(place)
    channel = Window.partitionBy("channel_name", "channel_created_on").orderBy("created_on", "row_sequencer")
    oldest = f.min("created_on").over(Window.partitionBy())
    is_whole = f.col("channel_created_on") >= oldest - f.expr("INTERVAL 2 MINUTES")
    counts = {
        name: f.when(f.row_number().over(channel) > 1, f.greatest(f.lit(0), f.col(name) - f.lag(name).over(channel)))
        .when(is_whole, f.col(name))
        .alias(name)
        for name in _COUNTS
    }
    columns = [counts.get(name, f.col(name)) for name in kept.columns if name != HISTORY_DAY]
    return kept.select(f.lit(table).alias("table_name"), *columns)


def file_migrations(context: ClientContext, table: str) -> DataFrame:
    """A row for each time that small files of the table became large ones (OPTIMIZE). Raises TableNotFound."""
    from pyspark.sql import functions as f

    uri, _ = context.tables.locate(table)
    history = context.spark.sql(f"DESCRIBE HISTORY {path_name(uri)}").where(f.col("operation") == "OPTIMIZE")
    metrics = [f.col("operationMetrics")[name].cast("bigint").alias(column) for column, name in _MIGRATED.items()]
    return history.select(f.lit(table).alias("table_name"), f.col("timestamp").alias("ended_on"), "version", *metrics)


@contextmanager
def with_histories(context: ClientContext, text: str) -> Iterator[str]:
    """The text as Spark knows it: functions for histories are temporary views. Good inside the context."""
    with TemporaryViews(context.spark) as views:
        pieces = {}
        for mention in find_histories(text):
            read = channel_history if mention.history is History.CHANNELS else file_migrations
            pieces[mention.span] = views.of(read(context, mention.table))
        yield exchanged(text, pieces)
