"""A cluster in which drivers outlive the worker that started them (PROTOCOL steps 8, 9)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from tidemark.model.jobs import JobResult
from tidemark.model.statements import TransactionKey
from tidemark.streams.worker.hosts import Host

__all__ = ["Cluster", "DriverGoesOn", "LeftDriver", "owner_of"]


@dataclass(frozen=True)
class LeftDriver:
    """A driver that nobody saw end. `application`: its id in the cluster, None if its worker died before it was stored.
    `about`: the owner of the job, for messages. `own`: this attempt of the task has started it.
    """

    job_id: str
    application: str | None
    about: str
    deadline: datetime
    own: bool = False


class Cluster(Host, Protocol):
    """A host whose drivers any worker finds again."""

    def wait_for(self, driver: LeftDriver) -> JobResult | None:
        """The result of the driver after its end; None if it surely never began and never will.

        Raises JobError if it has surely ended without a result, and ClusterError if that is not known.
        Raises DriverGoesOn if the task is to wait in the triggerer. A second run is harmless.
        """

    def take_up(self, owner: str, *, about: str, deadline: datetime) -> None:
        """Wait for each job of the owner that an earlier attempt has left and that has no row in the control store.

        A job that is alive at `deadline` is ended. The marker asks a job without proof of its end to stop. Raises
        ClusterError if the cluster does not answer, or if a driver does not end. A second run is harmless.
        """

    def end_registered(self, owner: str) -> None:
        """End each job of the owner that has no row in the control store. A second run is harmless."""


class DriverGoesOn(BaseException):
    """No error: the driver runs, and the task is to wait for it elsewhere. All that is pinned stays pinned. The next
    attempt at the same work finds the driver. `own`: this attempt has started it, so its failure is the attempt's.
    """

    def __init__(self, application: str, job_id: str, deadline: datetime, *, own: bool) -> None:
        super().__init__(f"application {application} still runs")
        self.application = application
        self.job_id = job_id
        self.deadline = deadline
        self.own = own


def owner_of(store_id: str, key: TransactionKey) -> str:
    """The name of a task of a run in the lake, the same for each of its attempts."""
    return hashlib.sha256(f"{store_id}/{key}".encode()).hexdigest()[:32]
