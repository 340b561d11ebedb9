"""The REFRESH_EXTERNAL_TABLE job: which files there are now is noted in a Delta table, so Spark writes it."""

from __future__ import annotations

from tidemark.jobs.context import JobContext
from tidemark.model.external_tables import ExternalTableRequest, Refreshed
from tidemark.streams.driver.external_tables.refresh import refresh_external_table as refresh

__all__ = ["refresh_external_table"]


def refresh_external_table(job: JobContext, request: ExternalTableRequest) -> Refreshed:
    """Create the external table if it does not exist, else refresh it. A second run finds less to do, or nothing.
    Raises what `refresh_external_table` of the engine does.
    """
    return refresh(job.session, job.spec.workspace, request, job.options)
