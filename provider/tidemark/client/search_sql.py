"""Statements on search optimization in `lake.sql`, and queries that search paths serve."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tidemark.client.sql_answers import status_answer
from tidemark.errors import TableNotFound, TidemarkError
from tidemark.jobs.remote import is_remote
from tidemark.search.driver.frames import path_of_files, rows_of_files
from tidemark.search.planning.queries import SearchedQuery, searched_query
from tidemark.search.planning.sql import parse_search_sql
from tidemark.search.planning.statements import AddSearch, DescribeSearch, DropSearch, EstimateSearch
from tidemark.sql.statements import path_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidemark.client.context import ClientContext
    from tidemark.client.search import SearchOfALake
    from tidemark.client.table_search import TableSearch
    from tidemark.client.temporary_views import TemporaryViews
    from tidemark.search.model.paths import Search
    from tidemark.sql.statements import ParsedStatement

__all__ = ["run_search_sql", "searched_tables"]

_DONE = "Statement executed successfully."
_DESCRIBED = "expression_id INT, method STRING, target STRING, target_data_type STRING, active BOOLEAN"


def run_search_sql(lake: SearchOfALake, context: ClientContext, text: str) -> DataFrame | None:
    """The answer to a statement on search optimization; None for any other. Raises what `Lake.sql` says."""
    statement = parse_search_sql(text)
    match statement:
        case None:
            return None
        case DescribeSearch():
            return _described(lake, context, statement.table)
        case EstimateSearch():
            shown = json.dumps(lake.estimate_search_targets(statement.table, statement.targets), indent=2)
            title = statement.title.replace("`", "``")
            return context.spark.createDataFrame([(shown,)], f"`{title}` STRING")
        case AddSearch() | DropSearch():
            _change(lake, statement)
    return status_answer(context.spark, _DONE)


def searched_tables(
    search: TableSearch, context: ClientContext, parsed: ParsedStatement, views: TemporaryViews
) -> dict[str, str]:
    """The table of a query as a view of its files that can hold rows; empty if no file is left out.

    Behind Spark Connect it is the path of a log of these files. A text is analysed later there, when the view is gone.
    """
    if len(parsed.mentions) != 1 or not search.any:
        return {}
    query = searched_query(parsed.sql, parsed.mentions)
    if query is None:
        return {}
    name = parsed.mentions[0].name
    try:
        path = context.tables.locate(name)[0]
    except TidemarkError:
        return {}  # a view, or no table; Spark says so
    found = search.of(path)
    return {} if found is None else _pruned(context, search, query, name, found, views)


def _pruned(
    context: ClientContext, search: TableSearch, query: SearchedQuery, name: str, found: Search, views: TemporaryViews
) -> dict[str, str]:
    snapshot = search.newest(found.table.path)
    choice = search.choice_of(query, snapshot, found)
    if choice is None or not choice.pruned:
        return {}
    if is_remote(context.spark):
        return {name: path_name(path_of_files(context.spark, snapshot, choice.files, context.workspace))}
    return {name: views.of(rows_of_files(context.spark, snapshot, choice.files, context.workspace))}


def _change(lake: SearchOfALake, statement: AddSearch | DropSearch) -> None:
    change = lake.add_search_targets if isinstance(statement, AddSearch) else lake.drop_search_targets
    try:
        change(statement.table, statement.targets)
    except TableNotFound:
        if not statement.if_exists:
            raise


def _described(lake: SearchOfALake, context: ClientContext, table: str) -> DataFrame:
    search = lake.search_optimization(table)
    rows = [
        (
            path.id,
            path.method.value,
            path.column.name,
            path.column.type,
            not path.has_rows or path.id in search.kept_ids,
        )
        for path in search.paths
    ]
    return context.spark.createDataFrame(rows, _DESCRIBED)
