"""One job from its request to its report, where nothing of it is kept but what the caller does with the report."""

from __future__ import annotations

from typing import TypeVar

from tidemark.control.store import ControlStore
from tidemark.errors import from_record
from tidemark.model.jobs import Job, JobResult
from tidemark.model.transactions import TransactionKey
from tidemark.transactions.limits import DEFAULT_LIMITS, JobPlaces, Limits, RunJob

__all__ = ["report_of", "run_job"]

Request = TypeVar("Request")
Report = TypeVar("Report")


def run_job(
    store: ControlStore,
    job: Job[Request, Report],
    request: Request,
    *,
    run: RunJob,
    places: JobPlaces,
    key: TransactionKey | None,
    limits: Limits = DEFAULT_LIMITS,
    streams: tuple[str, ...] = (),
) -> Report:
    """Run it under an id of its own, with a deadline from now on. Raises JobError, and the errors of the job."""
    deadline = store.clock() + limits.job_deadline
    spec = places.spec(
        job, store.new_id(), request, store_id=store.store_id, deadline=deadline, key=key, streams=streams
    )
    return report_of(job, run(spec))


def report_of(job: Job[Request, Report], result: JobResult) -> Report:
    """What the job reports. Raises its error."""
    if result.error is not None:
        raise from_record(result.error)
    return job.reported(result)
