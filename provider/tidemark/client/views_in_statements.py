"""Views of ours that statements of a transaction name: read as rows, and never written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.client.kept_rows import rows_of_view
from tidemark.errors import StatementRefused, TableNotFound
from tidemark.materialized.planning.names import without_catalog
from tidemark.materialized.planning.sql import parse_view_sql
from tidemark.materialized.worker.views import find_view, find_views
from tidemark.streams.driver.catalog_tables import kind_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from tidemark.client.context import ClientContext
    from tidemark.client.temporary_views import TemporaryViews

__all__ = ["refuse_statements_of_views", "require_no_view", "views_read"]


def refuse_statements_of_views(text: str) -> None:
    """Raises StatementRefused for a statement of views, and SqlCompilationError for one that is half of it."""
    if parse_view_sql(text) is not None:
        problem = "a transaction reads views, and does not create, change or refresh them; use lake.sql around it"
        raise StatementRefused(problem=problem, sql=text)


def _refuse_names_with_catalogs(context: ClientContext, names: Collection[str]) -> None:
    """Raises TableNotFound for a name that no catalog knows, and that is a view's name behind that of a catalog."""
    for name in names:
        own = without_catalog(name)
        if own is None or find_view(context.store, own) is None or kind_of(context.spark, name) is not None:
            continue
        hint = f"{own} is a view of the lake, and no catalog is part of its name."
        raise TableNotFound(path=f"{name} (in Spark's catalog)", hint=hint)


def require_no_view(context: ClientContext, target: str, text: str) -> None:
    """Say nothing if `target` is no view. Raises StatementRefused."""
    if find_view(context.store, target) is not None:
        raise StatementRefused(problem=f"{target} is refreshed from its query alone", sql=text)


def views_read(context: ClientContext, names: Collection[str], views: TemporaryViews) -> dict[str, str]:
    """Temporary views of the rows of those of `names` that are views of ours, as a reader sees them now. Raises
    KeptViewNotReady, and TableNotFound for a view's name behind that of a catalog.
    """
    _refuse_names_with_catalogs(context, names)
    return {name: views.of(rows_of_view(context, name)) for name in find_views(context.store, names)}
