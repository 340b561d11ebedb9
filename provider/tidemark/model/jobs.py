"""The messages between a worker and a Spark driver: a JobSpec one way, a JobResult the other.

A kind of job is a `Job`. It names the dataclass of its request, that of its report, and the driver's function between
them. Each `Job` is in the module of its dataclasses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from tidemark.model.codec import from_plain
from tidemark.model.statements import TransactionKey

__all__ = ["ErrorRecord", "Job", "JobResult", "JobSpec"]

Request = TypeVar("Request")
Report = TypeVar("Report")


@dataclass(frozen=True)
class Job(Generic[Request, Report]):
    """A kind of job. `entry`: the driver's `module:function` below `tidemark`, which takes a JobContext and the
    request, and returns the report. `name` is in logs, metrics and the control store. `is_long`: it may
    take hours, so it leaves a slot of a warm Spark to others.
    """

    name: str
    request: type[Request]
    report: type[Report]
    entry: str
    is_long: bool = False

    def requested(self, spec: JobSpec) -> Request:
        """The request of a spec of this kind. Raises ValueError for one of another release."""
        found: Request = from_plain(self.request, spec.request)
        return found

    def reported(self, result: JobResult) -> Report:
        """The report of a result without an error. Raises ValueError for one of another release."""
        found: Report = from_plain(self.report, result.report)
        return found


@dataclass(frozen=True)
class JobSpec:
    """One job. It has no secrets: the store is named by its id, the lake by its URI.

    `kind`, `entry`: of its Job; `request`: in plain form. `workspace`: the parent directory of log-only tables
    (`<lake root>/_tidemark`); `result_uri` and `cancel_uri` are local paths or URIs that both processes can reach.
    After `deadline` the job stops itself (step 9). `streams`: the names of the streams that it reads, for metrics.
    `planned_bytes`: about how much it reads, for its executors; None if nobody has counted. `is_long`: as its Job.
    """

    kind: str
    entry: str
    request: Mapping[str, Any]
    store_id: str
    workspace: str
    result_uri: str
    cancel_uri: str
    deadline: datetime
    key: TransactionKey | None = None
    streams: tuple[str, ...] = ()
    planned_bytes: int | None = None
    is_long: bool = False

    @property
    def about(self) -> str:
        """Its owner, for messages."""
        return str(self.key) if self.key is not None else self.kind


@dataclass(frozen=True)
class ErrorRecord:
    """An error of our tree on its way between processes."""

    error: str
    facts: Mapping[str, Any]
    message: str


@dataclass(frozen=True)
class JobResult:
    """The answer of a job: its report in plain form, or an error. `application`: the id of the Spark application that
    ran this job alone.
    """

    report: Mapping[str, Any] = field(default_factory=dict)
    error: ErrorRecord | None = None
    application: str | None = None
