"""A cluster in which drivers outlive the worker that started them (PROTOCOL steps 8, 9)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from tidemark.model.jobs import JobResult
from tidemark.streams.worker.hosts import Host

__all__ = ["Cluster", "DriverGoesOn", "LeftDriver"]


@dataclass(frozen=True)
class LeftDriver:
    """A driver that nobody saw end. `application`: its id in the cluster, None if its worker died before it was stored.
    `about`: the owner of the job, for messages.
    """

    job_id: str
    application: str | None
    about: str
    deadline: datetime


class Cluster(Host, Protocol):
    """A host whose drivers any worker finds again."""

    def wait_for(self, driver: LeftDriver) -> JobResult | None:
        """The result of the driver after its end; None if it surely never began and never will.

        Raises JobError if it has surely ended without a result, and ClusterError if that is not known.
        Raises DriverGoesOn if the task is to wait in the triggerer. A second run is harmless.
        """


class DriverGoesOn(BaseException):
    """No error: the driver runs, and the task is to wait for it elsewhere. All that is pinned stays pinned. The next
    attempt at the same work finds the driver.
    """

    def __init__(self, application: str, job_id: str, deadline: datetime) -> None:
        super().__init__(f"application {application} still runs")
        self.application = application
        self.job_id = job_id
        self.deadline = deadline
