"""The bases of kept queries in a notebook: tables of the lake and of Spark's catalog, files, and views of ours."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from tidemark.errors import AmbiguousTableName, KeptViewRefused, TidemarkError
from tidemark.lake.external_tables import find_external_table
from tidemark.materialized.driver.job_resolve_query import resolve_query_in
from tidemark.materialized.model.definitions import KeptKind, KeptView
from tidemark.materialized.model.jobs import ResolveRequest
from tidemark.materialized.model.shapes import Shape
from tidemark.materialized.worker.defining import Lakes, stored_view
from tidemark.model.streams import Addressing
from tidemark.sql.table_names import table_name
from tidemark.streams.model.sources import Source, view_source

if TYPE_CHECKING:
    from tidemark.client.context import ClientContext

__all__ = ["lakes_of", "source_of_view"]


def lakes_of(context: ClientContext, *, enable_row_tracking: bool) -> Lakes:
    """The means of this Spark and this lake."""
    return Lakes(
        resolve=lambda request: resolve_query_in(context.spark, request, context.options),
        locate=partial(_located, context),
        open=context.tables,
        files=lambda name: find_external_table(context.paths.workspace, name, context.options),
        turn_on=context.turn_on_row_tracking if enable_row_tracking else None,
    )


def source_of_view(context: ClientContext, view: KeptView) -> Source:
    """The rows of a view as the source of a stream. Raises KeptViewRefused if their changes cannot be computed."""
    name = ".".join(f"`{part}`" for part in view.name.split("."))
    request = ResolveRequest(
        name=view.name,
        text=f"SELECT * FROM {name}",
        kind=KeptKind.DYNAMIC_TABLE,
        views={view.name: stored_view(view)},
    )
    found = resolve_query_in(context.spark, request, context.options)
    if found.shape.shape is Shape.PLAIN:
        problem = f"a stream cannot follow it. {found.shape.why}"
        raise KeptViewRefused(kind="The stream on", view=view.name, problem=problem)
    return view_source(view.name, found.shape.whole, found.bases)


def _located(context: ClientContext, name: str) -> str | None:
    """The URI of a name that Spark's catalog does not know and the lake's root does."""
    if table_name(name).path is not None:
        return None
    try:
        location, addressing = context.tables.locate(name)
    except AmbiguousTableName:
        raise
    except (TidemarkError, AnalysisException):
        return None
    return location if addressing is Addressing.LAKE else None
