"""The CREATE_QUARANTINE job: make the table that a quarantine is to be, ahead of the plan that names its id."""

from __future__ import annotations

from tidemark.engine.writes.quarantine_table import create_quarantine_table
from tidemark.errors import TableNotFound
from tidemark.jobs.context import JobContext
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.jobs import JobResult
from tidemark.planning.statements import path_name

__all__ = ["QUARANTINE_TABLE", "create_quarantine"]

QUARANTINE_TABLE = "table"


def create_quarantine(job: JobContext) -> JobResult:
    """There is a Delta table at `options["table"]`, a path or URI. Facts: path → version now.

    A second run, or another at the same time, finds it and changes nothing.
    """
    path = job.spec.options[QUARANTINE_TABLE]
    job.stop_if_due()
    create_quarantine_table(job.session, path_name(path), lambda: _is_there(job, path))
    return JobResult(facts={path: DeltaLog.open(path, job.options).head()})


def _is_there(job: JobContext, path: str) -> bool:
    try:
        DeltaLog.open(path, job.options)
    except TableNotFound:
        return False
    return True
