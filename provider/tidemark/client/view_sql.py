"""Statements of materialized views and dynamic tables in `lake.sql`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.client import view_answers as answers
from tidemark.client.sql_answers import status_answer
from tidemark.client.views import view_desk
from tidemark.materialized.model.definitions import KeptKind, KeptView
from tidemark.materialized.planning import statements as said
from tidemark.materialized.planning.sql import parse_view_sql
from tidemark.materialized.worker import views
from tidemark.materialized.worker.statements import run_statement
from tidemark.streams.planning.stream_sql.listing import listed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidemark.client.context import ClientContext

__all__ = ["run_view_sql"]


def run_view_sql(context: ClientContext, text: str) -> DataFrame | None:
    """The answer to a statement of materialized views or dynamic tables; None for any other. Raises what `Lake.sql`
    says.
    """
    statement = parse_view_sql(text)
    match statement:
        case None:
            return None
        case said.ShowViews():
            return _shown(context, statement)
        case said.DescribeView():
            return answers.described_view(context.spark, views.get_view(context.store, statement.name, statement.kind))
        case _:
            answer = run_statement(view_desk(context, enable_row_tracking=True), statement)
            return status_answer(context.spark, answer.status, answer.notices)


def _shown(context: ClientContext, show: said.ShowViews) -> DataFrame:
    found: dict[str, KeptView] = {view.name: view for view in views.list_views(context.store, show.kind)}
    names = listed(
        found,
        like=show.like,
        database=show.database,
        schema=show.schema,
        starts_with=show.starts_with,
        limit=show.limit,
        from_name=show.from_name,
    )
    meant = [found[name] for name in names]
    if show.kind is KeptKind.MATERIALIZED_VIEW:
        return answers.shown_materialized_views(context.spark, meant, context.store.clock())
    return answers.shown_dynamic_tables(context.spark, meant)
