"""How long things may take, and where a job's files lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from tidemark.model.codec import to_plain
from tidemark.model.jobs import Job, JobResult, JobSpec
from tidemark.model.statements import TransactionKey

__all__ = ["DEFAULT_LIMITS", "JobPaths", "Limits", "RunJob"]

Request = TypeVar("Request")

RunJob = Callable[[JobSpec], JobResult]
"""Runs one job to its end. Returning, or raising a JobError, promises that the job can write no more; after
anything else it counts as alive until its deadline. Failures of the work come in `JobResult.error`."""


@dataclass(frozen=True)
class Limits:
    """`lease`: how long others wait for a silent holder. `job_deadline`: after this a job has stopped itself (step 9).

    `margin` is added to the deadline for clocks that differ; a target must remember transactions for both (step 6).
    """

    lease: timedelta = timedelta(minutes=10)
    job_deadline: timedelta = timedelta(hours=6)
    margin: timedelta = timedelta(hours=1)

    @property
    def longest_pin(self) -> timedelta:
        """How long a target must remember a transaction."""
        return self.job_deadline + self.margin


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True)
class JobPaths:
    """`workspace`: root of log-only tables. `exchange`: the directory for result files and cancel markers.

    Both are paths or URIs that worker and driver can reach.
    """

    workspace: str
    exchange: str

    def result_uri(self, job_id: str) -> str:
        """The URI to which this one job writes its result; no other job ever does."""
        return f"{self.exchange.rstrip('/')}/{job_id}.result.json"

    def cancel_uri(self, job_id: str) -> str:
        """The marker that tells this job to stop."""
        return f"{self.exchange.rstrip('/')}/{job_id}.cancel"

    def spec(
        self,
        job: Job[Request, Any],
        job_id: str,
        request: Request,
        *,
        store_id: str,
        deadline: datetime,
        key: TransactionKey | None,
        streams: tuple[str, ...] = (),
    ) -> JobSpec:
        """The job of that id, its files at these paths."""
        return JobSpec(
            kind=job.name,
            entry=job.entry,
            request=to_plain(request),
            store_id=store_id,
            workspace=self.workspace,
            result_uri=self.result_uri(job_id),
            cancel_uri=self.cancel_uri(job_id),
            deadline=deadline,
            key=key,
            streams=streams,
            is_long=job.is_long,
        )
