"""Views of ours that statements of a transaction name: read as rows, and never written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.client.kept_rows import rows_of_view
from tidemark.errors import StatementRefused, TableNotFound
from tidemark.materialized.model.definitions import KeptKind
from tidemark.materialized.planning.names import without_catalog
from tidemark.materialized.planning.reading import over_kept
from tidemark.materialized.planning.sql import parse_view_sql
from tidemark.materialized.worker.reading import kept_read
from tidemark.materialized.worker.views import find_view, find_views
from tidemark.sql.statements import ParsedStatement, splice
from tidemark.streams.driver.catalog_tables import kind_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from tidemark.client.context import ClientContext
    from tidemark.client.temporary_views import TemporaryViews

__all__ = ["over_dynamic_tables", "refuse_statements_of_views", "require_no_view", "views_read"]


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


def over_dynamic_tables(context: ClientContext, parsed: ParsedStatement, streams: Collection[str]) -> str:
    """The text of a write with the kept rows of dynamic tables in place of their names.

    The write runs as a job at the commit, and a retry runs it again. Raises StatementRefused for a materialized view,
    whose rows only a client can compute, and KeptViewNotReady.
    """
    target = None if parsed.target is None else parsed.target.name
    found = find_views(context.store, [name for name in parsed.names if name not in streams and name != target])
    for name, view in found.items():
        if view.kind is KeptKind.MATERIALIZED_VIEW:
            problem = f"a write in a transaction cannot read the materialized view {name}. Keep a dynamic table instead"
            raise StatementRefused(problem=problem, sql=parsed.sql)
        kept_read(context.store, name, context.tables)
    rows = {name: f"({over_kept(view.shape, view.kept.path)})" for name, view in found.items()}
    return splice(parsed, rows) if rows else parsed.sql
