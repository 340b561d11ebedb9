"""SHOW TABLES in `lake.sql`: Spark's rows, and how each table is kept."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyspark.sql import types as T

from tidemark.clustering.planning.keys import in_words
from tidemark.clustering.worker.tables import list_clustered
from tidemark.errors import TidemarkError
from tidemark.search.worker.definitions import list_searches
from tidemark.sql.identifiers import spelled
from tidemark.sql.text import BLANK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from tidemark.client.context import ClientContext
    from tidemark.client.search import SearchOfALake
    from tidemark.clustering.model.tables import ClusteredTable
    from tidemark.model.streams import TableRef
    from tidemark.search.model.paths import Search

__all__ = ["run_show_tables"]

_SHOW = re.compile(BLANK + r"SHOW\s+TABLES\b", re.DOTALL | re.IGNORECASE)
_ADDED = (
    T.StructField("cluster_by", T.StringType()),
    T.StructField("automatic_clustering", T.StringType()),
    T.StructField("search_optimization", T.StringType()),
    T.StructField("search_optimization_progress", T.IntegerType()),
    T.StructField("search_optimization_bytes", T.LongType()),
)


def run_show_tables(lake: SearchOfALake, context: ClientContext, text: str) -> DataFrame | None:
    """The rows of Spark's SHOW TABLES with five columns more; None for any other statement.

    `cluster_by`: the key, or "". `automatic_clustering` and `search_optimization`: ON or OFF.
    `search_optimization_progress`: percent of the table's files that all paths cover. `search_optimization_bytes`: of
    the search table. The last two are NULL without search paths.
    """
    if not _SHOW.match(text):
        return None
    shown = context.spark.sql(text)
    clustered = {one.table.path: one for one in list_clustered(context.store)}
    searched = {one.table.path: one for one in list_searches(context.store)}
    names = _names([*(one.table for one in clustered.values()), *(one.table for one in searched.values())])

    def added(row: Row) -> tuple[object, ...]:
        path = _path_of(context, row) if row.tableName.casefold() in names else None
        return (*_clustering(clustered.get(path or "")), *_search(lake, searched.get(path or "")))

    rows = [(*row, *added(row)) for row in shown.collect()]
    return context.spark.createDataFrame(rows, T.StructType([*shown.schema.fields, *_ADDED]))


def _names(tables: Iterable[TableRef]) -> frozenset[str]:
    """The names that these tables may have in a catalog: the last part of their own, or of their path."""
    found = [(table.name.rpartition(".")[2].strip("`"), table.path.rstrip("/").rpartition("/")[2]) for table in tables]
    return frozenset(name.casefold() for both in found for name in both)


def _path_of(context: ClientContext, row: Row) -> str | None:
    """The canonical path of a table in the catalog; None for a temporary view, or what is no Delta table."""
    if row.isTemporary:
        return None
    try:
        return context.tables.locate(f"{row.namespace}.{spelled(row.tableName)}")[0]
    except TidemarkError:
        return None


def _clustering(table: ClusteredTable | None) -> tuple[str, str]:
    if table is None:
        return "", "OFF"
    return in_words(table.key), "OFF" if table.suspended else "ON"


def _search(lake: SearchOfALake, search: Search | None) -> tuple[str, int | None, int | None]:
    if search is None:
        return "OFF", None, None
    return "ON", lake.table_search.progress(search), search.size
