"""The client of a job: it commits in the driver's own JVM."""

from __future__ import annotations

from tidemark.channels.driver.client import IngestClient
from tidemark.channels.driver.engines import engine_of
from tidemark.jobs.context import JobContext
from tidemark.jobs.run import utc_now
from tidemark.lake.tables import location_of, resolve

__all__ = ["client_of_job"]


def client_of_job(
    job: JobContext, name: str, lake_root: str, *, only_writer: bool, max_client_lag: str = "1 second"
) -> IngestClient:
    """A client for tables of the lake, by their names there."""
    return IngestClient(
        name,
        engine_of(job.session),
        lambda table: resolve(table, lake_root, job.options)[0],
        options=job.options,
        locate_new=lambda table: location_of(table, lake_root)[0],
        max_client_lag=max_client_lag,
        only_writer=only_writer,
        clock=utc_now,
    )
