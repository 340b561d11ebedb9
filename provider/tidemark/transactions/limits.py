"""How long things may take, and where a job's files lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from tidemark.model.jobs import JobResult, JobSpec

__all__ = ["DEFAULT_LIMITS", "JobPlaces", "Limits", "RunJob"]

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
class JobPlaces:
    """`workspace`: root of log-only tables. `exchange`: the directory for result files and cancel markers.

    Both are paths or URIs that worker and driver can reach; `options` are handed to the job as they are.
    """

    workspace: str
    exchange: str
    options: Mapping[str, str] = field(default_factory=dict)

    def result_uri(self, job_id: str) -> str:
        """Where this one job writes its result; no other job ever does."""
        return f"{self.exchange.rstrip('/')}/{job_id}.result.json"

    def cancel_uri(self, job_id: str) -> str:
        """The marker that tells this job to stop."""
        return f"{self.exchange.rstrip('/')}/{job_id}.cancel"
