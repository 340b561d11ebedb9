"""Materialized views and dynamic tables from a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from tidemark.client.context import ClientContext, logger
from tidemark.client.kept_rows import catalog_view, drop_catalog_view, history_of, rows_of_view
from tidemark.client.view_bases import lakes_of
from tidemark.errors import InvalidArgument
from tidemark.lake.tables import location_of
from tidemark.materialized.model.definitions import (
    FloatSums,
    Initialize,
    KeptKind,
    KeptView,
    RefreshMode,
    TargetLag,
)
from tidemark.materialized.model.refreshes import Refreshed
from tidemark.materialized.planning.choices import choice_of
from tidemark.materialized.planning.lags import target_lag as lag_of
from tidemark.materialized.planning.names import require_view_name
from tidemark.materialized.worker import refresh as refreshing
from tidemark.materialized.worker import views
from tidemark.materialized.worker.defining import ViewRequest
from tidemark.materialized.worker.statements import Desk, create_and_fill, outcome_of
from tidemark.model.statements import TransactionKey
from tidemark.streams.planning.stream_sql.listing import listed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["ViewsOfALake", "view_desk"]


class ViewsOfALake:
    """The part of `Lake` that keeps the results of queries. Names are found in any case."""

    _context: ClientContext

    def create_materialized_view(
        self,
        name: str,
        query: str,
        *,
        cluster_by: Sequence[str] = (),
        comment: str | None = None,
        refresh_mode: str = "auto",
        float_sums: str = "recomputed",
        or_replace: bool = False,
        if_not_exists: bool = False,
        enable_row_tracking: bool = False,
    ) -> KeptView:
        """A materialized view with its first rows. A read of it answers for the newest versions of its bases.

        `query`: a SELECT in Spark's SQL. `refresh_mode`: auto, full or incremental. `float_sums`: incremental lets sums
        of DOUBLE and FLOAT drift by rounding. `enable_row_tracking` turns it on in bases where it is off. With
        `if_not_exists` a second run refreshes a view without rows, and else changes nothing. Raises KeptViewExists,
        KeptViewRefused, ViewRefused for a value of run time such as current_date(), RowTrackingDisabled,
        InvalidArgument for a client without a lake root.
        """
        request = ViewRequest(
            name=name,
            kind=KeptKind.MATERIALIZED_VIEW,
            text=query,
            path=_kept_path(self._context, name),
            mode=choice_of(RefreshMode, "refresh_mode", refresh_mode),
            float_sums=choice_of(FloatSums, "float_sums", float_sums),
            cluster_by=tuple(cluster_by),
            comment=comment,
            or_replace=or_replace,
            if_not_exists=if_not_exists,
        )
        return _create(self._context, request, enable_row_tracking=enable_row_tracking)

    def create_dynamic_table(
        self,
        name: str,
        query: str,
        *,
        target_lag: str | timedelta | TargetLag,
        refresh_mode: str = "auto",
        initialize: str = "on_create",
        cluster_by: Sequence[str] = (),
        comment: str | None = None,
        or_replace: bool = False,
        if_not_exists: bool = False,
        enable_row_tracking: bool = False,
    ) -> KeptView:
        """A dynamic table. A read of it answers as of its last refresh.

        `target_lag`: '10 minutes', a timedelta, or DOWNSTREAM for as its readers need it. `initialize`: on_create
        refreshes it at once, on_schedule leaves that to the first run of the DAG. Other arguments and errors as for
        `create_materialized_view`.
        """
        request = ViewRequest(
            name=name,
            kind=KeptKind.DYNAMIC_TABLE,
            text=query,
            path=_kept_path(self._context, name),
            target_lag=lag_of(target_lag),
            mode=choice_of(RefreshMode, "refresh_mode", refresh_mode),
            initialize=choice_of(Initialize, "initialize", initialize),
            cluster_by=tuple(cluster_by),
            comment=comment,
            or_replace=or_replace,
            if_not_exists=if_not_exists,
        )
        return _create(self._context, request, enable_row_tracking=enable_row_tracking)

    def refresh_view(self, name: str, *, refresh_mode: str | None = None) -> Refreshed:
        """Refresh a view, and before it the dynamic tables that it reads, all as of one point in time.

        `refresh_mode`: for this refresh, in place of the view's own. A view whose bases have not changed starts no job.
        Raises KeptViewNotFound, KeptViewSuspended, StreamLocked while another run refreshes it.
        """
        mode = None if refresh_mode is None else choice_of(RefreshMode, "refresh_mode", refresh_mode)
        found = views.get_view(self._context.store, name)
        done = refreshing.refresh_view(self._context.runtime, found.name, key=_new_key(self._context), mode=mode)
        return outcome_of(done, found.name)

    def refresh_due_views(self, names: Sequence[str] | None = None) -> tuple[Refreshed, ...]:
        """Refresh the views that are due, among `names` or all, in the order in which they read each other."""
        return refreshing.refresh_due(self._context.runtime, names, key=_new_key(self._context))

    def suspend_view(self, name: str) -> KeptView:
        """The view is not refreshed until it is resumed. Raises KeptViewNotFound."""
        return views.suspend_view(self._context.store, name, by=self._context.who)

    def resume_view(self, name: str) -> KeptView:
        """The view is refreshed again. Raises KeptViewNotFound."""
        return views.resume_view(self._context.store, name, by=self._context.who)

    def set_target_lag(self, name: str, target_lag: str | timedelta | TargetLag) -> KeptView:
        """Give a dynamic table another lag. Raises KeptViewNotFound, InvalidArgument."""
        return views.set_lag(self._context.store, name, lag_of(target_lag), by=self._context.who)

    def drop_view(self, name: str, *, if_exists: bool = False) -> None:
        """End a view. Its kept table stays, as a table of its own. Raises KeptViewNotFound, and TransactionOpen during
        a refresh.
        """
        ended = views.drop_view(self._context.store, name, if_exists=if_exists, by=self._context.who)
        if ended is not None:
            drop_catalog_view(self._context, ended)

    def show_views(self, *, kind: str | None = None, like: str | None = None) -> tuple[KeptView, ...]:
        """All views by name. `kind`: materialized_view or dynamic_table. `like` knows % and _ and no case."""
        wanted = None if kind is None else choice_of(KeptKind, "kind", kind)
        found = {view.name: view for view in views.list_views(self._context.store, wanted)}
        return tuple(found[name] for name in listed(found, like=like))

    def view_history(self, name: str) -> DataFrame:
        """The refreshes of a view, newest first, with the requested mode, the way and its reason.

        The estimates of both ways are in bytes. Rows, bytes, seconds and versions are those of the write. Raises
        KeptViewNotFound.
        """
        return history_of(self._context, name)

    def table(self, name: str) -> DataFrame:
        """The rows of a table by its name. A materialized view answers for the newest versions of its bases, and a
        dynamic table as of its last refresh. Raises TableNotFound, KeptViewNotReady.
        """
        if views.find_view(self._context.store, name) is not None:
            return rows_of_view(self._context, name)
        context = self._context
        if context.tables.is_view(name):
            return context.spark.table(name)
        path = context.tables(name).uri
        return self.searched(context.spark.read.format("delta").load(path), path)

    def searched(self, frame: DataFrame, path: str) -> DataFrame:
        """The table at a path, as `SearchOfALake` reads it."""
        raise NotImplementedError


def _create(context: ClientContext, request: ViewRequest, *, enable_row_tracking: bool) -> KeptView:
    """The view, after its first refresh if it is to have one at once."""
    made = create_and_fill(view_desk(context, enable_row_tracking=enable_row_tracking), request)
    if made.left is not None:
        logger.warning("%s is created again.%s", made.view.name, made.words_of_left)
    return made.view


def view_desk(context: ClientContext, *, enable_row_tracking: bool) -> Desk:
    """The means of statements in a notebook. A catalog that lasts has a view of each materialized view."""
    return Desk(
        store=context.store,
        who=context.who,
        lakes=lakes_of(context, enable_row_tracking=enable_row_tracking),
        path=partial(_kept_path, context),
        refresh=lambda name: refreshing.refresh_view(context.runtime, name, key=_new_key(context)),
        created=partial(catalog_view, context),
        dropped=partial(drop_catalog_view, context),
    )


def _kept_path(context: ClientContext, name: str) -> str:
    """The path of the table that a view of that name keeps. Raises InvalidArgument."""
    require_view_name(name)
    if context.lake_root is None:
        problem = "a view keeps its rows below the root of the lake; give lake_root to connect()"
        raise InvalidArgument(argument="lake_root", value=None, problem=problem)
    return location_of(name, context.lake_root)[0]


def _new_key(context: ClientContext) -> TransactionKey:
    return TransactionKey("client", context.store.new_id(), "transaction")
