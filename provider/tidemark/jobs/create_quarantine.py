"""The CREATE_QUARANTINE job: make the table that a quarantine is to be, ahead of the plan that names its id."""

from __future__ import annotations

from tidemark.engine.writes.quarantine_table import create_quarantine_table
from tidemark.jobs.context import JobContext
from tidemark.model.jobs import JobResult

__all__ = ["QUARANTINE_TABLE", "create_quarantine"]

QUARANTINE_TABLE = "table"


def create_quarantine(job: JobContext) -> JobResult:
    """There is a Delta table at `options["table"]`, a path or URI. Facts: path → version now.

    A second run, or another at the same time, finds it and changes nothing.
    """
    path = job.spec.options[QUARANTINE_TABLE]
    job.stop_if_due()
    return JobResult(facts={path: create_quarantine_table(job.session, path, job.options).head()})
