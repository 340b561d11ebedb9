"""Statements of materialized views and dynamic tables in `lake.sql`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.client import view_answers as answers
from tidemark.client.kept_rows import drop_catalog_view
from tidemark.client.sql_answers import status_answer
from tidemark.client.views import create_and_refresh, kept_path
from tidemark.materialized.model.definitions import KeptKind, KeptView
from tidemark.materialized.planning import statements as said
from tidemark.materialized.planning.sql import parse_view_sql
from tidemark.materialized.worker import views
from tidemark.materialized.worker.defining import ViewRequest
from tidemark.streams.planning.stream_sql.listing import listed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidemark.client.context import ClientContext
    from tidemark.client.lake import Lake

__all__ = ["run_view_sql"]

_DONE = "Statement executed successfully."
_WORDS = {KeptKind.MATERIALIZED_VIEW: "Materialized view", KeptKind.DYNAMIC_TABLE: "Dynamic table"}


def run_view_sql(lake: Lake, context: ClientContext, text: str) -> DataFrame | None:
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
        case said.CreateView():
            return status_answer(context.spark, _created(context, statement), statement.notices)
        case _:
            notices = statement.notices if isinstance(statement, said.AlterView) else ()
            return status_answer(context.spark, _changed(lake, context, statement), notices)


def _created(context: ClientContext, create: said.CreateView) -> str:
    existed = views.find_view(context.store, create.name) is not None
    request = ViewRequest(
        name=create.name,
        kind=create.kind,
        text=create.text,
        path=kept_path(context, create.name),
        target_lag=create.target_lag,
        mode=create.mode,
        initialize=create.initialize,
        cluster_by=create.cluster_by,
        comment=create.comment,
        columns=create.columns,
        or_replace=create.or_replace,
        if_not_exists=create.if_not_exists,
    )
    made = create_and_refresh(context, request, enable_row_tracking=True)
    if existed and create.if_not_exists:
        return f"{create.name} already exists, statement succeeded."
    why = f" It is refreshed in full: {made.shape.why}" if made.shape.why else ""
    return f"{_WORDS[create.kind]} {create.name} successfully created.{why}"


def _changed(lake: Lake, context: ClientContext, statement: said.ViewStatement) -> str:
    """The status of a statement that changes or refreshes a view."""
    match statement:
        case said.DropView():
            return _dropped(context, statement)
        case said.AlterView() | said.SuspendView() | said.ResumeView() | said.RefreshView():
            if statement.if_exists and views.find_view(context.store, statement.name) is None:
                return _DONE
            return _altered(lake, context, statement)
    return _DONE


def _altered(
    lake: Lake,
    context: ClientContext,
    alter: said.AlterView | said.SuspendView | said.ResumeView | said.RefreshView,
) -> str:
    store, who = context.store, context.who
    view = views.get_view(store, alter.name, alter.kind)
    match alter:
        case said.SuspendView():
            views.suspend_view(store, view.name, by=who)
        case said.ResumeView():
            views.resume_view(store, view.name, by=who)
        case said.RefreshView():
            done = lake.refresh_view(view.name)
            how = done.state.value if done.how is None else done.how.value
            return f"{view.name} refreshed ({how}): {done.rows} rows written. {done.why or ''}".strip()
        case said.AlterView():
            if alter.target_lag is not None:
                views.set_lag(store, view.name, alter.target_lag, by=who)
            if alter.comment is not None or alter.unset_comment:
                views.comment_on_view(store, view.name, alter.comment, by=who)
    return _DONE


def _dropped(context: ClientContext, drop: said.DropView) -> str:
    ended = views.drop_view(context.store, drop.name, kind=drop.kind, if_exists=drop.if_exists, by=context.who)
    if ended is None:
        return f"Drop statement executed successfully ({drop.name} already dropped)."
    drop_catalog_view(context, ended)
    return f"{drop.name} successfully dropped. Its rows stay in the table at {ended.kept.path}."


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
