"""The CREATE_QUARANTINE job: make the table that a quarantine is to be, ahead of the plan that names its id."""

from __future__ import annotations

from tidemark.delivery.driver.quarantine_table import create_quarantine_table
from tidemark.jobs.context import JobContext
from tidemark.streams.model.table_jobs import TablePath, TableVersion

__all__ = ["create_quarantine"]


def create_quarantine(job: JobContext, request: TablePath) -> TableVersion:
    """There is a Delta table then. A second run, or another at the same time, finds it and changes nothing."""
    job.stop_if_due()
    return TableVersion(create_quarantine_table(job.session, request.path, job.options).head())
