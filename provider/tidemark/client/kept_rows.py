"""The rows of kept queries in a notebook, and their history."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from tidemark.changes.driver.views.catalog import Catalog
from tidemark.client.context import logger
from tidemark.materialized.driver.fresh_rows import fresh_rows, kept_rows
from tidemark.materialized.driver.taken_names import is_over
from tidemark.materialized.model.definitions import KeptKind, KeptView
from tidemark.materialized.planning.reading import over_kept
from tidemark.materialized.worker.prepare import LOST
from tidemark.materialized.worker.reading import KeptRead, fresh_read, kept_read, whole_window
from tidemark.materialized.worker.streams import stream_of_view
from tidemark.materialized.worker.views import get_view, view_history

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidemark.client.context import ClientContext

__all__ = ["catalog_view", "drop_catalog_view", "history_of", "rows_of_view"]

_HISTORY = (
    "planned_at TIMESTAMP, as_of TIMESTAMP, ended_at TIMESTAMP, state STRING, refresh_mode STRING, action STRING,"
    " reason STRING, incremental_bytes BIGINT, full_bytes BIGINT, rows BIGINT, bytes BIGINT, seconds DOUBLE,"
    " write_seconds DOUBLE, versions STRING, run STRING, error STRING"
)


def rows_of_view(context: ClientContext, name: str) -> DataFrame:
    """The rows of a view: as of the newest versions of its bases for a materialized one, else of its last refresh.

    If the changes since the last refresh cannot be read, the query itself answers. Raises KeptViewNotFound,
    KeptViewNotReady.
    """
    view = get_view(context.store, name)
    if view.kind is KeptKind.DYNAMIC_TABLE:
        view, version = kept_read(context.store, name, context.tables)
        return kept_rows(context.spark, view.shape, view.kept.path, version)
    try:
        return _fresh(context, fresh_read(context.store, name, context.tables))
    except LOST as error:
        logger.warning("The query of %s answers itself, since its changes cannot be read: %s", view.name, error)
        window = whole_window(context.store, stream_of_view(context.store, view), context.tables)
        return _fresh(context, KeptRead(view, None, window))


def history_of(context: ClientContext, name: str) -> DataFrame:
    """The refreshes of a view, newest first."""
    rows = [
        (
            one.planned_at,
            one.as_of,
            one.ended_at,
            one.state.value,
            one.asked.value,
            None if one.how is None else one.how.value,
            one.why,
            one.incremental_bytes,
            one.full_bytes,
            one.rows,
            one.bytes,
            one.seconds,
            one.write_seconds,
            json.dumps(dict(one.versions)),
            one.run,
            one.error,
        )
        for one in view_history(context.store, name)
    ]
    return context.spark.createDataFrame(rows, _HISTORY)


def catalog_view(context: ClientContext, view: KeptView) -> None:
    """A view of that name in the session's catalog with the rows of the last refresh, if the catalog outlives the
    session. A second run creates it again. A dynamic table has none, and removes that of a view it has replaced.
    """
    if not _catalog_lasts(context):
        return
    if view.kind is not KeptKind.MATERIALIZED_VIEW:
        _drop_view_over(context, view)
        return
    text = over_kept(view.shape, view.kept.path)
    try:
        context.spark.sql(f"CREATE OR REPLACE VIEW {_quoted(view.name)} AS {text}")
    except AnalysisException as error:
        first = str(error).splitlines()[0]
        logger.warning("The catalog has no view %s: %s", view.name, first)


def drop_catalog_view(context: ClientContext, view: KeptView) -> None:
    """Remove the view from the session's catalog, if it has one."""
    if view.kind is KeptKind.MATERIALIZED_VIEW and _catalog_lasts(context) and context.tables.is_view(view.name):
        context.spark.sql(f"DROP VIEW IF EXISTS {_quoted(view.name)}")


def _drop_view_over(context: ClientContext, table: KeptView) -> None:
    name = _quoted(table.name)
    if context.tables.is_view(table.name) and is_over(Catalog(context.spark).described(name), table.kept.path):
        context.spark.sql(f"DROP VIEW IF EXISTS {name}")


def _fresh(context: ClientContext, read: KeptRead) -> DataFrame:
    return fresh_rows(
        context.spark,
        read.view.shape,
        read.view.kept.path,
        read.version or 0,
        read.window,
        context.workspace,
        context.options,
    )


def _catalog_lasts(context: ClientContext) -> bool:
    return str(context.spark.conf.get("spark.sql.catalogImplementation", "in-memory")) == "hive"


def _quoted(name: str) -> str:
    return ".".join(f"`{part}`" for part in name.split("."))
