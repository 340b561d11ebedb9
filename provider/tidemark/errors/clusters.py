"""Errors of a cluster that runs drivers."""

from __future__ import annotations

from tidemark.errors.jobs import JobError
from tidemark.errors.tree import TidemarkError

__all__ = [
    "ApplicationUnknown",
    "ClusterError",
    "ClusterRefused",
    "ClusterUnreachable",
    "DriverDied",
    "DriverEndUnproven",
    "DriverMayRunOn",
]


class ClusterError(TidemarkError):
    """{message}"""


class ClusterUnreachable(ClusterError):
    """YARN does not answer at {address}: {problem}. Drivers may continue. A retry finds them and waits for them, and
    each statement still happens once.
    """


class ClusterRefused(ClusterError):
    """YARN at {address} refuses the request {request}: {problem}. Check the address in the Spark connection, and the
    rights of the worker's user.
    """


class ApplicationUnknown(ClusterError):
    """YARN at {address} does not know the application {application}. A resource manager forgets the oldest of those
    that have ended (yarn.resourcemanager.max-completed-applications), and all of them if it restarts without recovery.
    Look for it in Spark's history server. A retry is safe: each statement still happens once.
    """


class DriverMayRunOn(ClusterError):
    """The driver of the job for {key}, application {application}, may still run in the cluster: {problem}. It counts as
    running until {deadline}. A retry is safe: each statement still happens once.
    """


class DriverEndUnproven(DriverMayRunOn):
    """YARN calls the application {application} of the job for {key} {state}, but nothing proves that its driver has
    ended: {problem}. The cancel marker asks it to stop. It counts as running until {deadline}. A retry is safe: each
    statement still happens once. YARN: {diagnostics} Last lines: {tail}
    """


class DriverDied(JobError):
    """The driver of the job for {key}, application {application}, ended as {state} ({final_status}) and left no result.
    A retry writes what is missing. YARN: {diagnostics} Last lines: {tail}
    """
