"""The PREPARE job: turn on row tracking, on request only, since it changes a live table."""

from __future__ import annotations

from tidemark.jobs.context import JobContext
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.jobs import JobResult
from tidemark.planning.statements import path_name

__all__ = ["PREPARED_TABLE", "prepare"]

PREPARED_TABLE = "table"


def prepare(job: JobContext) -> JobResult:
    """Row tracking is on afterwards, and the offset may be taken: up to three commits come before it (R3).

    The table is `options["table"]`, a path or URI, else the windows' sources. Facts: path → version now. A second run
    changes nothing.
    """
    named = job.spec.options.get(PREPARED_TABLE)
    paths = [named] if named is not None else [window.source.path for window in job.spec.windows]
    for path in paths:
        if not DeltaLog.open(path, job.options).state().row_tracking:
            job.stop_if_due()
            job.session.sql(f"ALTER TABLE {path_name(path)} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    return JobResult(facts={path: DeltaLog.open(path, job.options).head() for path in paths})
