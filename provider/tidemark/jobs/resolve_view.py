"""The RESOLVE_VIEW job: only Spark's catalog knows what a view reads."""

from __future__ import annotations

from tidemark.engine.views.catalog import resolve_view as view_of
from tidemark.jobs.context import JobContext
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.codec import to_plain
from tidemark.model.jobs import JobResult
from tidemark.model.streams import Addressing, TableRef

__all__ = ["BEYOND_SNOWFLAKE", "VIEW", "resolve_view"]

VIEW = "view"
BEYOND_SNOWFLAKE = "beyond_snowflake"


def resolve_view(job: JobContext) -> JobResult:
    """The view `options["view"]`, taken further than Snowflake if `options["beyond_snowflake"]` is "true".

    Facts: `query`, a ViewQuery, and `bases`, a list of TableRef, one for each of its base tables. Raises ViewRefused,
    ViewTextMissing, ViewNotUnderstood, TableNotFound, NotADeltaTable.
    """
    options = job.spec.options
    query = view_of(job.session, options[VIEW], beyond_snowflake=options.get(BEYOND_SNOWFLAKE) == "true")
    return JobResult(facts={"query": to_plain(query), "bases": [to_plain(_base(job, name)) for name in query.bases]})


def _base(job: JobContext, name: str) -> TableRef:
    location = job.session.sql(f"DESCRIBE DETAIL {name}").collect()[0]["location"]
    log = DeltaLog.open(location, job.options)
    return TableRef(name=name, path=log.uri, table_id=log.state().table_id, addressing=Addressing.CATALOG)
