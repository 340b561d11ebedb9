"""The PREPARE job: turn on row tracking, on request only, since it changes a live table."""

from __future__ import annotations

from tidemark.jobs.context import JobContext
from tidemark.lake.delta_log import DeltaLog
from tidemark.sql.statements import path_name
from tidemark.streams.model.table_jobs import TablePath, TableVersion

__all__ = ["prepare"]


def prepare(job: JobContext, request: TablePath) -> TableVersion:
    """Row tracking is on afterwards, and the offset may be taken: up to three commits come before it (R3). A second
    run changes nothing.
    """
    if not DeltaLog.open(request.path, job.options).state().row_tracking:
        job.stop_if_due()
        job.session.sql(f"ALTER TABLE {path_name(request.path)} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    return TableVersion(DeltaLog.open(request.path, job.options).head())
