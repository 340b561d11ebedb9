"""The histories of loads in a client, and in queries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING

from tidemark.client.temporary_views import TemporaryViews
from tidemark.errors import TidemarkError
from tidemark.lake.storage import canonical_uri
from tidemark.pipes.driver.files_table import FilesTable, utc
from tidemark.pipes.driver.histories import (
    COPY_HISTORY,
    PIPE_HISTORY,
    copy_history,
    file_loads,
    no_rows,
    open_history,
    pipe_history,
)
from tidemark.pipes.driver.queue_facts import queue_facts
from tidemark.pipes.model.events import COPY_KEPT, COPY_SUFFIX, KEPT
from tidemark.pipes.model.pipes import Pipe
from tidemark.pipes.model.status import QueueFacts
from tidemark.pipes.planning.names import name_parts
from tidemark.pipes.planning.sql_views import find_load_histories
from tidemark.pipes.worker.definitions import get_pipe
from tidemark.pipes.worker.needs import copy_of, pipes_of_table
from tidemark.pipes.worker.resolve import place_of
from tidemark.sql.table_names import table_name
from tidemark.sql.text import exchanged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidemark.client.context import ClientContext

__all__ = ["copy_history_of", "facts_of", "insert_report_of", "load_history_of", "with_load_histories"]

_RECENT = timedelta(minutes=10)
_MOST_REPORTED = 10_000
_Names = tuple[str | None, str | None, str]


def copy_history_of(context: ClientContext, table: str, start: datetime, end: datetime | None = None) -> DataFrame:
    """The loads into a table between two times, by COPY statements and by pipes, also dropped ones.

    Raises TableNotFound.
    """
    uri, _ = context.tables.locate(table)
    now, place = context.store.clock(), canonical_uri(uri)
    span = (_aware(start), now + timedelta(days=1) if end is None else _aware(end))
    names = _names(table)
    found = []
    own = open_history(context.spark, place + COPY_SUFFIX, context.options, COPY_KEPT)
    if own is not None:
        found.append(copy_history(file_loads(own, now), names, None, *span))
    for pipe in pipes_of_table(context.store, table, is_same=lambda name: _is_at(context, name, place)):
        queue = _queue(context, pipe)
        if queue is not None:
            loads = file_loads(queue, now, _location(context, pipe))
            found.append(copy_history(loads, names, _parts(name_parts(pipe.name)), *span))
    if not found:
        return no_rows(context.spark, COPY_HISTORY)
    return reduce(lambda one, other: one.unionByName(other), found)


def load_history_of(
    context: ClientContext, pipe: str, start: datetime | None = None, end: datetime | None = None
) -> DataFrame:
    """The files whose load ended from `start` on and before `end`. Raises PipeNotFound."""
    from pyspark.sql import functions as f

    ended = _history(context, pipe).where("complete")
    if start is not None:
        ended = ended.where(f.col("lastInsertTime") >= f.lit(_aware(start)))
    return ended if end is None else ended.where(f.col("lastInsertTime") < f.lit(_aware(end)))


def insert_report_of(context: ClientContext, pipe: str) -> DataFrame:
    """The files that wait, are being loaded, or were loaded lately; the newest first. Raises PipeNotFound."""
    from pyspark.sql import functions as f

    lately = f.col("lastInsertTime") >= f.lit(context.store.clock() - _RECENT)
    files = _history(context, pipe).where(~f.col("complete") | lately)
    return files.orderBy(f.coalesce("lastInsertTime", "timeReceived").desc(), "path").limit(_MOST_REPORTED)


def facts_of(context: ClientContext, pipe: Pipe) -> QueueFacts:
    """The facts of the pipe's queue; those of an empty one if no run has made it yet."""
    queue = _queue(context, pipe)
    return QueueFacts() if queue is None else queue_facts(queue, context.store.clock())


@contextmanager
def with_load_histories(context: ClientContext, text: str) -> Iterator[str]:
    """The text as Spark knows it: COPY_HISTORY is a temporary view. Good inside the context."""
    with TemporaryViews(context.spark) as views:
        pieces = {}
        for mention in find_load_histories(text):
            end = None if mention.end_time is None else _time(context, mention.end_time)
            rows = copy_history_of(context, mention.table, _time(context, mention.start_time), end)
            if mention.result_limit is not None:
                rows = rows.orderBy("last_load_time", ascending=False).limit(mention.result_limit)
            pieces[mention.span] = views.of(rows)
        yield exchanged(text, pieces)


def _history(context: ClientContext, name: str) -> DataFrame:
    pipe = get_pipe(context.store, name)
    queue = _queue(context, pipe)
    if queue is None:
        return no_rows(context.spark, PIPE_HISTORY)
    return pipe_history(file_loads(queue, context.store.clock(), _location(context, pipe)))


def _queue(context: ClientContext, pipe: Pipe) -> FilesTable | None:
    return open_history(context.spark, pipe.queue, context.options, KEPT)


def _location(context: ClientContext, pipe: Pipe) -> str | None:
    """The location of the pipe's files now; None if its stage is gone."""
    try:
        return place_of(copy_of(pipe).source, context.store).location
    except TidemarkError:
        return None


def _is_at(context: ClientContext, name: str, place: str) -> bool:
    try:
        return canonical_uri(context.tables.locate(name)[0]) == place
    except TidemarkError:
        return False


def _names(table: str) -> _Names:
    meant = table_name(table)
    return _parts(meant.parts) if meant.path is None else (None, None, meant.path)


def _parts(parts: tuple[str, ...]) -> _Names:
    database, schema, name = (None, None, None, *parts)[-3:]
    return database, schema, name or ""


def _time(context: ClientContext, expression: str) -> datetime:
    (row,) = context.spark.sql(f"SELECT unix_micros(CAST({expression} AS TIMESTAMP)) AS at").collect()
    return utc(row["at"])


def _aware(time: datetime) -> datetime:
    """The time; one without a zone is in UTC."""
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time
