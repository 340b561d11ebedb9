"""Queries and writes that use streams, CHANGES, AT | BEFORE and the system functions beside Spark's names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from tidemark.client.created_tables import create_and_fill, fill_once
from tidemark.client.reads import changes_between, unread_rows, version_at
from tidemark.client.search_sql import searched_tables
from tidemark.client.sql_answers import backlog_answer, rows_answer, status_answer
from tidemark.client.temporary_views import TemporaryViews
from tidemark.client.transaction import LakeTransaction
from tidemark.client.views_in_statements import require_no_view, views_read
from tidemark.errors import AmbiguousTableName, StatementRefused, TidemarkError
from tidemark.model.statements import TransactionKey
from tidemark.model.streams import Addressing
from tidemark.sql.names import sql_name
from tidemark.sql.statements import ParsedStatement, parse_statement, path_name, splice, with_quoted_metadata_columns
from tidemark.streams.planning.stream_sql.mentions import tables_read
from tidemark.streams.planning.stream_sql.queries import spliced
from tidemark.streams.planning.stream_sql.starts import point_of, start_of
from tidemark.streams.planning.stream_sql.statements import (
    BacklogCall,
    ChangesClause,
    HasDataCall,
    QueryPart,
    StreamQuery,
    TableTimestampCall,
    TimeTravel,
)
from tidemark.streams.planning.stream_sql.tables import created_table, table_statement
from tidemark.streams.planning.stream_sql.wording import worded
from tidemark.streams.worker.backlog import stream_backlog, stream_table_timestamp
from tidemark.streams.worker.has_data import has_data
from tidemark.streams.worker.streams import list_streams

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidemark.client.context import ClientContext
    from tidemark.client.table_search import TableSearch

__all__ = ["pass_on", "run_query"]


def run_query(search: TableSearch, context: ClientContext, query: StreamQuery) -> DataFrame:
    """Put what Spark knows in place of what it does not, and pass the text on.

    Raises SqlCompilationError with the place in the text, and what the parts raise.
    """
    with TemporaryViews(context.spark) as views:
        text = spliced(query, [_replacement(context, query, part, views) for part in query.parts])
        return pass_on(search, context, text, consumes=not views.names)


def pass_on(search: TableSearch, context: ClientContext, text: str, *, consumes: bool = True) -> DataFrame:
    """Spark runs the text, with streams known by their names.

    A query reads them; a write that reads one is a transaction of its own, and advances it (R13 to R16). Raises
    StatementRefused if a statement that can do neither names a stream.
    """
    known = {stream.name.casefold(): stream.name for stream in list_streams(context.store)}
    try:
        parsed = parse_statement(text)
    except StatementRefused:
        text = with_quoted_metadata_columns(text)
        if any(name.casefold() in known for name in tables_read(text)):
            made = _created(search, context, text, known) if consumes else None
            if made is None:
                raise
            return made
        return context.spark.sql(table_statement(text) or text)
    target = None if parsed.target is None else parsed.target.name
    if target is not None:
        require_no_view(context, target, text)
    read = tuple(known[n.casefold()] for n in parsed.names if n.casefold() in known and n != target)
    if target is None or not read:
        return _read(search, context, parsed, read)
    if not consumes:
        problem = (
            "CHANGES, AT | BEFORE and BACKLOG cannot be part of a write that reads a stream; query them on their own"
        )
        raise StatementRefused(problem=problem, sql=text)
    return _consume(context, text)


def _created(search: TableSearch, context: ClientContext, text: str, known: Mapping[str, str]) -> DataFrame | None:
    """The answer to CREATE TABLE … AS SELECT from streams; None for another statement."""
    table = created_table(text)
    if table is None:
        return None
    query = parse_statement(table.query)
    streams = tuple(known[name.casefold()] for name in query.names if name.casefold() in known)
    done = create_and_fill(
        context,
        text,
        table,
        streams,
        read=lambda: _read(search, context, query, streams),
        fill=partial(fill_once, context),
    )
    state = "successfully created" if done else "already exists, statement succeeded"
    return status_answer(context.spark, f"Table {table.name.text} {state}.")


def _consume(context: ClientContext, text: str) -> DataFrame:
    key = TransactionKey("client", context.store.new_id(), "transaction")
    with LakeTransaction(context, key, checks=False) as transaction:
        transaction.sql(text)
        return rows_answer(context.spark, transaction.commit())


def _read(search: TableSearch, context: ClientContext, parsed: ParsedStatement, streams: tuple[str, ...]) -> DataFrame:
    with TemporaryViews(context.spark) as views:
        shown = {name: views.of(unread_rows(context, name)) for name in streams}
        shown |= views_read(context, [name for name in parsed.names if name not in streams], views)
        known = {name.casefold() for name in shown}
        others = [name for name in parsed.names if name.casefold() not in known]
        found = searched_tables(search, context, parsed, views) if not known and parsed.target is None else {}
        found = found or _tables_of_the_lake(context, others)
        return context.spark.sql(splice(parsed, {**found, **shown}))


def _tables_of_the_lake(context: ClientContext, names: Iterable[str]) -> dict[str, str]:
    """Names that Spark's catalog does not know and the lake's root does, as paths; Spark says what the others are.
    Raises AmbiguousTableName.
    """
    found = {}
    for name in names:
        try:
            location, addressing = context.tables.locate(name)
        except AmbiguousTableName:
            raise
        except (TidemarkError, AnalysisException):
            continue
        if addressing is Addressing.LAKE:
            found[name] = path_name(location)
    return found


def _replacement(context: ClientContext, query: StreamQuery, part: QueryPart, views: TemporaryViews) -> str:
    """SQL text, ready for Spark, that means what the part means."""
    if isinstance(part, HasDataCall):
        return ("TRUE" if has_data(context.store, part.stream.text, tables=context.tables) else "FALSE") + _as(
            part.title
        )
    if isinstance(part, TableTimestampCall):
        return f"{stream_table_timestamp(context.store, part.stream.text, tables=context.tables)}L" + _as(part.title)
    if isinstance(part, BacklogCall):
        return views.of(
            backlog_answer(context.spark, stream_backlog(context.store, part.stream.text, tables=context.tables))
        )
    if isinstance(part, TimeTravel):
        return views.of(_as_it_was(context, query, part)) + _as(part.alias)
    return views.of(_changes(context, query, part)) + _as(part.alias)


def _changes(context: ClientContext, query: StreamQuery, part: ChangesClause) -> DataFrame:
    source = sql_name(part.source)
    with worded(query.text, part.source, part.start, part.end):
        return changes_between(
            context,
            source,
            part.mode,
            end=None if part.end is None else point_of(part.end),
            **start_of(part.start),
        )


def _as_it_was(context: ClientContext, query: StreamQuery, part: TimeTravel) -> DataFrame:
    source = sql_name(part.source)
    with worded(query.text, part.source, part.point):
        version = version_at(context, source, **start_of(part.point))
        path = context.tables(source).uri
        return context.spark.read.format("delta").option("versionAsOf", version).load(path)


def _as(name: str | None) -> str:
    return "" if name is None else " AS `" + name.replace("`", "``") + "`"
