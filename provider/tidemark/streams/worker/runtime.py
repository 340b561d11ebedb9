"""The means by which a step on the worker's side acts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from tidemark.control.store import ControlStore
from tidemark.errors import from_record
from tidemark.model.jobs import Job, JobResult, JobSpec
from tidemark.model.statements import TransactionKey
from tidemark.streams.worker.clusters import Cluster
from tidemark.streams.worker.hosts import UNKNOWN_HOST, Host
from tidemark.streams.worker.limits import DEFAULT_LIMITS, JobPaths, Limits, RunJob
from tidemark.streams.worker.sizing import Sizing
from tidemark.streams.worker.sources import Tables, open_table

__all__ = ["Runtime", "report_of"]

Request = TypeVar("Request")
Report = TypeVar("Report")


@dataclass(frozen=True)
class Runtime:
    """The control store, a way to run jobs with the paths of their files, and a way to open tables' logs. `host`: where
    the jobs are started. `serves_views`: streams that belong to views may be moved. `cluster`: the host, if drivers
    outlive their worker there. `awaited`: the job of this attempt for which the task has waited in the triggerer.
    `sizing`: plans the executors of jobs, if the connection has bounds for them.
    """

    store: ControlStore
    run: RunJob
    paths: JobPaths
    tables: Tables = open_table
    limits: Limits = DEFAULT_LIMITS
    host: Host = UNKNOWN_HOST
    serves_views: bool = False
    cluster: Cluster | None = None
    awaited: str | None = None
    sizing: Sizing | None = None

    def deadline(self) -> datetime:
        """When a job that is ordered now has stopped itself."""
        return self.store.clock() + self.limits.job_deadline

    def spec(
        self,
        job: Job[Request, Any],
        request: Request,
        *,
        key: TransactionKey | None,
        deadline: datetime,
        streams: tuple[str, ...] = (),
    ) -> JobSpec:
        """An order for a job, under an id that was never used before."""
        job_id, store_id = self.store.new_id(), self.store.store_id
        return self.paths.spec(job, job_id, request, store_id=store_id, deadline=deadline, key=key, streams=streams)

    def run_job(
        self,
        job: Job[Request, Report],
        request: Request,
        *,
        key: TransactionKey | None,
        streams: tuple[str, ...] = (),
    ) -> Report:
        """The report of a job; nothing else of the job is kept. Raises JobError, and the errors of the job."""
        return report_of(job, self.run(self.spec(job, request, key=key, deadline=self.deadline(), streams=streams)))


def report_of(job: Job[Request, Report], result: JobResult) -> Report:
    """The report of the job. Raises its error."""
    if result.error is not None:
        raise from_record(result.error)
    return job.reported(result)
