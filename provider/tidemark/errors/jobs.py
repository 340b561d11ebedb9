"""What is wrong with a job, and how its errors come back from it."""

from __future__ import annotations

from tidemark.errors.tree import TidemarkError
from tidemark.model.jobs import ErrorRecord

__all__ = [
    "ConnectClientNotFound",
    "DirectoryNotPrivate",
    "JavaNotFound",
    "JobCancelled",
    "JobDeadlineExceeded",
    "JobDied",
    "JobError",
    "JobFailed",
    "JobLeftNoResult",
    "JobMayRunOn",
    "LakeNotShared",
    "SparkMasterUnfit",
    "SparkNotFound",
    "SparkServerUnfit",
    "SparkServerUnreachable",
    "from_record",
]


class JobError(TidemarkError):
    """{message}"""


class JobDied(JobError):
    """The Spark job for {key} ended with exit code {exit_code} and left no result. Last lines: {tail}"""


class JobLeftNoResult(JobError):
    """The Spark job for {key} ended well but wrote no result to {result_uri}."""


class JobCancelled(JobError):
    """The Spark job for {key} was cancelled."""


class JobDeadlineExceeded(JobError):
    """The Spark job for {key} stopped itself at its deadline {deadline}."""


class JobFailed(JobError):
    """The Spark job failed with {error}: {message}"""


class JavaNotFound(JobError):
    """Spark needs Java 17, found: {found}. Install it, for example with: {command}"""


class SparkNotFound(JobError):
    """There is no spark-submit on the PATH of this worker. Install it, for example with: {command}"""


class DirectoryNotPrivate(JobError):
    """The files of jobs must lie in a directory of the worker's user alone, but {directory} {problem}. Remove it, or
    name another place: [tidemark] jobs_root in airflow.cfg, or TIDEMARK_JOBS_ROOT.
    """


class SparkMasterUnfit(JobError):
    """Spark cannot be submitted to {master}: {problem}."""


class ConnectClientNotFound(JobError):
    """There is no Spark Connect client on this worker: {missing} is missing. Install it, for example with: {command}"""


class SparkServerUnreachable(JobError):
    """No Spark Connect server answers at {server}: {problem}. Nothing was written. See that it runs, and that host,
    port, token and use_ssl of the Spark connection are right.
    """


class SparkServerUnfit(JobError):
    """The Spark Connect server at {server} cannot do the work: {problem}."""


class LakeNotShared(JobError):
    """Worker and Spark do not see the same lake: {problem}. Let both reach it by one name: the same directory mounted
    at the same path, or one object store of which both have the credentials.
    """


class JobMayRunOn(TidemarkError):
    """The job for {key} is gone, but the Spark Connect server at {server} does not say that its work has ended. It
    counts as running until {deadline}. Trying again is safe: each statement still happens once.
    """


def from_record(record: ErrorRecord) -> TidemarkError:
    """The error that `to_record` wrote; a class that this release does not know becomes `JobFailed`."""
    for kind in _all_errors(TidemarkError):
        if kind.__name__ == record.error:
            return kind(**record.facts)
    return JobFailed(error=record.error, message=record.message)


def _all_errors(root: type[TidemarkError]) -> list[type[TidemarkError]]:
    return [root, *(found for child in root.__subclasses__() for found in _all_errors(child))]
