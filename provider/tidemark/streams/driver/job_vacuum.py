"""The VACUUM job, on the driver's side."""

from __future__ import annotations

from tidemark.jobs.context import JobContext
from tidemark.streams.driver.vacuum import vacuum as run_vacuum
from tidemark.streams.planning.vacuum_job import Vacuumed, VacuumRequest

__all__ = ["vacuum"]


def vacuum(job: JobContext, request: VacuumRequest) -> Vacuumed:
    """A second run finds less to remove. Raises what `vacuum` of the engine does."""
    return run_vacuum(
        job.session,
        request.plan,
        job.options,
        started_at=job.started_at,
        dry_run=request.dry_run,
        go_on=job.stop_if_due,
    )
