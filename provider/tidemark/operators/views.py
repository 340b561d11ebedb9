"""Making materialized views and dynamic tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from tidemark.operators._base import flag_of
from tidemark.operators._constants import check_constants
from tidemark.operators._spark import SparkOperator
from tidemark.operators._view_desk import desk_of
from tidemark.operators._views import (
    columns_of,
    float_sums_of,
    initialize_of,
    lag_of,
    mode_of,
    outlets_of,
    query_of,
    tell_refreshed,
    view_of,
)

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.materialized.worker.defining import ViewRequest

__all__ = ["CreateDynamicTableOperator", "CreateMaterializedViewOperator"]


class CreateMaterializedViewOperator(SparkOperator):
    """Creates a materialized view with its first rows, or keeps the existing one. Its reads answer for the newest
    versions of its bases.

    A job asks Spark for the shape of the query, and another one writes the first rows. A second run refreshes a view
    without rows, and else changes nothing. Returns {view, kind, table, shape, why, created}; `why` is the reason for
    full refreshes. Raises ViewRefused with the place in the query for values of run time, KeptViewRefused,
    RowTrackingDisabled, TableNotFound, InvalidArgument.

    :param view: name of the view: `schema.name` below the lake root. (templated)
    :param query: the SELECT, in Spark's SQL, or the name of a file that ends in `.sql`. (templated)
    :param refresh_mode: `auto` takes the cheaper way at each refresh; `incremental` or `full`. (templated)
    :param float_sums: `recomputed`, or `incremental` for sums of DOUBLE and FLOAT that drift by rounding. (templated)
    :param cluster_by: columns by which Delta clusters the kept table. (templated)
    :param comment: shown with the view. (templated)
    :param or_replace: create it again even if it exists, at every run. (templated)
    :param enable_row_tracking: turn row tracking on in each base without it, by jobs. (templated)
    """

    template_fields: Sequence[str] = (
        "view", "query", "refresh_mode", "float_sums", "cluster_by", "comment", "or_replace", "enable_row_tracking",
        "conn_id",
    )  # fmt: skip
    template_ext: Sequence[str] = (".sql",)
    template_fields_renderers: ClassVar[dict[str, str]] = {"query": "sql"}

    def __init__(
        self,
        *,
        view: str,
        query: str,
        refresh_mode: str = "auto",
        float_sums: str = "recomputed",
        cluster_by: str | Sequence[str] = (),
        comment: str | None = None,
        or_replace: bool | str = False,
        enable_row_tracking: bool | str = False,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("outlets", outlets_of(view))
        super().__init__(**kwargs)
        self.view = view
        self.query = query
        self.refresh_mode = refresh_mode
        self.float_sums = float_sums
        self.cluster_by = cluster_by
        self.comment = comment
        self.or_replace = or_replace
        self.enable_row_tracking = enable_row_tracking
        check_constants(
            self,
            view=view_of,
            query=query_of,
            refresh_mode=mode_of,
            float_sums=float_sums_of,
            cluster_by=columns_of,
            or_replace=flag_of,
            enable_row_tracking=flag_of,
        )

    def execute(self, context: Context) -> dict[str, Any]:
        """The view as it is now: {view, kind, table, shape, why, created}."""
        from tidemark.materialized.worker.statements import create_and_fill

        tracked = flag_of("enable_row_tracking", self.enable_row_tracking)
        desk = desk_of(self, context, self.runtime, tracked=tracked)
        request = self._request(desk.path(view_of("view", self.view)))
        made = create_and_fill(desk, request)
        view = made.view
        if not made.created and view.text.strip() != request.text.strip():
            self.log.warning("%s exists with another query, and keeps it. or_replace changes it.", view.name)
        if made.left is not None:
            self.log.warning("%s is created again.%s", view.name, made.words_of_left)
        if view.shape.why is not None:
            self.log.info("%s: %s", view.name, view.shape.why)
        tell_refreshed(context, self, made.refreshed)
        return {
            "view": view.name,
            "kind": view.kind.value,
            "table": view.kept.path,
            "shape": view.shape.shape.value,
            "why": view.shape.why,
            "created": made.created,
        }

    def _request(self, path: str) -> ViewRequest:
        from tidemark.materialized.model.definitions import KeptKind
        from tidemark.materialized.worker.defining import ViewRequest

        replaces = flag_of("or_replace", self.or_replace)
        return ViewRequest(
            name=self.view,
            kind=KeptKind.MATERIALIZED_VIEW,
            text=query_of("query", self.query),
            path=path,
            mode=mode_of("refresh_mode", self.refresh_mode),
            float_sums=float_sums_of("float_sums", self.float_sums),
            cluster_by=columns_of("cluster_by", self.cluster_by),
            comment=self.comment or None,
            or_replace=replaces,
            if_not_exists=not replaces,
        )


class CreateDynamicTableOperator(CreateMaterializedViewOperator):
    """Creates a dynamic table, or keeps the existing one. Its reads answer as of its last refresh.

    Jobs, retries, errors, the answer and `comment` are those of CreateMaterializedViewOperator. RefreshDueViewsOperator
    refreshes it by its lag. Its rows are final, so `float_sums` has no effect.

    :param view: name of the table: `schema.name` below the lake root. (templated)
    :param query: the SELECT, in Spark's SQL, or the name of a file that ends in `.sql`. (templated)
    :param target_lag: the age that its rows may reach, such as `10 minutes`. `DOWNSTREAM`: it is refreshed with the
        views that read it. (templated)
    :param refresh_mode: `auto` takes the cheaper way at each refresh; `incremental` or `full`. (templated)
    :param initialize: `on_create` refreshes it at once, `on_schedule` leaves that to the first run of the DAG that
        refreshes views. (templated)
    :param cluster_by: columns by which Delta clusters the table. (templated)
    :param or_replace: create it again even if it exists, at every run. (templated)
    :param enable_row_tracking: turn row tracking on in each base without it, by jobs. (templated)
    """

    template_fields: Sequence[str] = (
        "view", "query", "target_lag", "refresh_mode", "initialize", "float_sums", "cluster_by", "comment",
        "or_replace", "enable_row_tracking", "conn_id",
    )  # fmt: skip

    def __init__(
        self,
        *,
        view: str,
        query: str,
        target_lag: str | timedelta,
        refresh_mode: str = "auto",
        initialize: str = "on_create",
        cluster_by: str | Sequence[str] = (),
        or_replace: bool | str = False,
        enable_row_tracking: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            view=view,
            query=query,
            refresh_mode=refresh_mode,
            cluster_by=cluster_by,
            or_replace=or_replace,
            enable_row_tracking=enable_row_tracking,
            **kwargs,
        )
        self.target_lag = target_lag
        self.initialize = initialize
        check_constants(self, target_lag=lag_of, initialize=initialize_of)

    def _request(self, path: str) -> ViewRequest:
        from tidemark.materialized.model.definitions import KeptKind
        from tidemark.materialized.worker.defining import ViewRequest

        replaces = flag_of("or_replace", self.or_replace)
        return ViewRequest(
            name=self.view,
            kind=KeptKind.DYNAMIC_TABLE,
            text=query_of("query", self.query),
            path=path,
            target_lag=lag_of("target_lag", self.target_lag),
            mode=mode_of("refresh_mode", self.refresh_mode),
            initialize=initialize_of("initialize", self.initialize),
            float_sums=float_sums_of("float_sums", self.float_sums),
            cluster_by=columns_of("cluster_by", self.cluster_by),
            comment=self.comment or None,
            or_replace=replaces,
            if_not_exists=not replaces,
        )
