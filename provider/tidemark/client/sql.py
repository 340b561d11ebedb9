"""`lake.sql`: statements in the SQL of the source system."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import TYPE_CHECKING

from tidemark.client.acceleration import AccelerationOfALake, run_acceleration_sql
from tidemark.client.change_stream_sql import define_change_stream, with_change_streams
from tidemark.client.channel_histories import with_histories
from tidemark.client.channel_sql import run_channel_sql
from tidemark.client.channels import ChannelsOfALake
from tidemark.client.clustering import ClusteringOfALake
from tidemark.client.clustering_sql import run_clustering_sql
from tidemark.client.descriptions import describe_listed, look_and_describe
from tidemark.client.external_tables import ExternalTables
from tidemark.client.objects import kind_of
from tidemark.client.pipe_histories import with_load_histories
from tidemark.client.pipe_sql import run_pipe_sql
from tidemark.client.pipes import PipesOfALake
from tidemark.client.search import SearchOfALake
from tidemark.client.search_sql import run_search_sql
from tidemark.client.shown_tables import run_show_tables
from tidemark.client.sources import sources_of
from tidemark.client.sql_answers import show_answer, status_answer, terse_answer
from tidemark.client.sql_queries import pass_on, run_query
from tidemark.client.view_sql import run_view_sql
from tidemark.results.worker.zones import zone_of
from tidemark.streams.planning.stream_sql.listing import listed
from tidemark.streams.planning.stream_sql.parse import parse_stream_sql
from tidemark.streams.planning.stream_sql.statements import DescribeStream, SetVariable, ShowStreams, StreamQuery
from tidemark.streams.worker.statements import Desk, run_statement
from tidemark.streams.worker.streams import get_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidemark.client.context import ClientContext
    from tidemark.client.table_search import TableSearch
    from tidemark.streams.planning.stream_sql.constants import Constant

__all__ = ["SubjectsOfALake", "run_sql"]


class SubjectsOfALake(ChannelsOfALake, ClusteringOfALake, PipesOfALake, SearchOfALake, AccelerationOfALake):
    """The parts of `Lake` whose statements it runs by its own methods."""


_SUBJECTS = (
    run_channel_sql, run_pipe_sql, run_search_sql, run_clustering_sql, run_acceleration_sql, run_show_tables,
)  # fmt: skip


def run_sql(lake: SubjectsOfALake, context: ClientContext, text: str, variables: dict[str, Constant]) -> DataFrame:
    """Run one statement and answer with its rows. SET adds to `variables`. Raises what `Lake.sql` says."""
    defined = define_change_stream(context, text)
    if defined is not None:
        return defined
    of_subjects = _run_of_subjects(lake, context, text)
    if of_subjects is not None:
        return of_subjects
    with (
        with_histories(context, text) as of_tables,
        with_load_histories(context, of_tables) as without,
        with_change_streams(context, without) as known,
    ):
        return _run(lake.table_search, context, known, variables)


def _run_of_subjects(lake: SubjectsOfALake, context: ClientContext, text: str) -> DataFrame | None:
    """The answer to a statement of one of these subjects; None for any other text."""
    for run in _SUBJECTS:
        answer = run(lake, context, text)
        if answer is not None:
            return answer
    return run_view_sql(context, text)


def _run(search: TableSearch, context: ClientContext, text: str, variables: dict[str, Constant]) -> DataFrame:
    statement = parse_stream_sql(text, now=context.store.clock(), zone=_zone(context), variables=variables)
    if statement is None:
        return pass_on(search, context, text)
    if isinstance(statement, StreamQuery):
        return run_query(search, context, statement)
    if isinstance(statement, SetVariable):
        variables[statement.name] = statement.value
        return status_answer(context.spark, "Statement executed successfully.")
    if isinstance(statement, ShowStreams):
        return _shown(context, statement)
    if isinstance(statement, DescribeStream):
        return show_answer(context.spark, [look_and_describe(context, get_stream(context.store, statement.name.text))])
    status, *notices = run_statement(_desk(context), statement, text)
    return status_answer(context.spark, status, notices)


def _desk(context: ClientContext) -> Desk:
    return Desk(
        store=context.store,
        sources=sources_of(context, enable_row_tracking=True),  # R3, R79
        who=context.who,
        kind_of=partial(kind_of, context),
        refresh=ExternalTables(context).refresh,
    )


def _shown(context: ClientContext, show: ShowStreams) -> DataFrame:
    choose = partial(
        listed,
        like=show.like,
        database=show.database,
        schema=show.schema,
        starts_with=show.starts_with,
        limit=show.limit,
        from_name=show.from_name,
    )
    answer = terse_answer if show.terse else show_answer
    return answer(context.spark, describe_listed(context, choose))


def _zone(context: ClientContext) -> tzinfo:
    """The zone of the session; UTC where Spark's name for it is one that Python does not know."""
    name = str(context.spark.conf.get("spark.sql.session.timeZone"))
    if (known := zone_of(name)) is not None:
        return known
    try:
        return datetime.fromisoformat(f"2000-01-01T00:00:00{name}").tzinfo or UTC
    except ValueError:
        return UTC
