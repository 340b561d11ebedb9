"""The RESOLVE_VIEW job: only Spark's catalog knows what a view reads."""

from __future__ import annotations

from tidemark.changes.driver.views.catalog import resolve_view as view_of
from tidemark.jobs.context import JobContext
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import Addressing, TableRef
from tidemark.streams.model.table_jobs import ResolvedView, ViewRequest

__all__ = ["resolve_view"]


def resolve_view(job: JobContext, request: ViewRequest) -> ResolvedView:
    """Raises ViewRefused, ViewTextMissing, ViewNotUnderstood, TableNotFound, NotADeltaTable."""
    query = view_of(job.session, request.view, beyond_snowflake=request.beyond_snowflake)
    return ResolvedView(query, tuple(_base(job, name) for name in query.bases))


def _base(job: JobContext, name: str) -> TableRef:
    location = job.session.sql(f"DESCRIBE DETAIL {name}").collect()[0]["location"]
    log = DeltaLog.open(location, job.options)
    return TableRef(name=name, path=log.uri, table_id=log.state().table_id, addressing=Addressing.CATALOG)
