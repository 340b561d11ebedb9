"""Errors of jobs, and errors read back from their records."""

from __future__ import annotations

from typing import Any

from tidemark.errors.tree import TidemarkError
from tidemark.model.jobs import ErrorRecord

__all__ = [
    "ConnectClientNotFound",
    "DirectoryNotPrivate",
    "DriverJvmNeeded",
    "JavaNotFound",
    "JobCancelled",
    "JobDeadlineExceeded",
    "JobDied",
    "JobError",
    "JobFailed",
    "JobFilesUnusable",
    "JobLeftNoResult",
    "JobMayRunOn",
    "LakeNotShared",
    "SparkMasterUnfit",
    "SparkNotFound",
    "SparkServerUnfit",
    "SparkServerUnreachable",
    "WarmSparkBusy",
    "WarmSparkEnded",
    "WarmSparkNotStarted",
    "from_record",
]

_BOUND_OR_RAISE = (
    "bound its window by max_commits or max_bytes, or raise job_deadline_hours of the Tidemark connection."
)


class JobError(TidemarkError):
    """{message}"""


class JobDied(JobError):
    """The Spark job for {key} ended with exit code {exit_code} and left no result. A retry continues, and each
    statement still happens once. Last lines: {tail}
    """


class JobLeftNoResult(JobError):
    """The Spark job for {key} succeeded but wrote no result to {result_uri}. A retry continues, and each statement
    still happens once.
    """


class JobCancelled(JobError):
    """The Spark job for {key} was cancelled. A retry continues, and each statement still happens once."""


class JobDeadlineExceeded(JobError):
    """The Spark job for {key} stopped itself at its deadline {deadline}. A retry continues. If the job needs longer,
    {remedy}
    """

    def __init__(self, *, remedy: str = _BOUND_OR_RAISE, **facts: Any) -> None:
        super().__init__(remedy=remedy, **facts)


class JobFailed(JobError):
    """The Spark job failed with {error}: {message}"""


class JavaNotFound(JobError):
    """Spark needs Java 17, found: {found}. Install it, for example with: {command}"""


class SparkNotFound(JobError):
    """spark-submit is not on the PATH of this worker. Install it, for example with: {command}"""


class JobFilesUnusable(JobError):
    """The files of the job for {key} cannot be written or read in {directory}: {problem}. Make room there, or repair
    the directory. A retry continues, and each statement still happens once.
    """


class DirectoryNotPrivate(JobError):
    """Job files need a directory that only the worker's user can enter, but {directory} {problem}. Remove it, or
    name another directory: [tidemark] jobs_root in airflow.cfg, or TIDEMARK_JOBS_ROOT.
    """


class SparkMasterUnfit(JobError):
    """Spark cannot be submitted to {master}: {problem}."""


class ConnectClientNotFound(JobError):
    """The worker has no Spark Connect client: {missing} is missing. Install it, for example with: {command}"""


class SparkServerUnreachable(JobError):
    """No Spark Connect server answers at {server}: {problem}. Nothing was written. Check that it runs, and check host,
    port, token and use_ssl of the Spark connection.
    """


class SparkServerUnfit(JobError):
    """The Spark Connect server at {server} cannot do the work: {problem}."""


class DriverJvmNeeded(JobError):
    """A function uses {attribute}, which a session of Spark Connect does not have. Set spark_mode of the Tidemark
    connection to submit for such functions.
    """


class WarmSparkBusy(JobError):
    """The job for {key} did not begin before its deadline {deadline}. It waited {minutes} minutes for one of the
    {slots} slots that it may take in the warm Spark of this host. Jobs in slots: {jobs}. A retry waits again. To run
    more jobs at a time, raise spark_slots of the Tidemark connection, and spark.driver.memory in the Spark settings.
    """


class WarmSparkEnded(JobError):
    """The warm Spark of this host ended while it ran the job for {key}. A retry starts another one, and each statement
    still happens once. If the job needs more memory, raise spark.driver.memory in the Spark settings, or set spark_mode
    of the Tidemark connection to submit. Its log is {log}.
    """


class WarmSparkNotStarted(JobError):
    """The warm Spark of this host did not start: {problem}. Nothing was written. Its log is {log}. If this host cannot
    keep a Spark running, set spark_mode of the Tidemark connection to submit. Last lines: {tail}
    """


class LakeNotShared(JobError):
    """Worker and Spark do not see the same lake: {problem}. Give both the same path: a directory that both mount at one
    place, or an object store for which both have credentials.
    """


class JobMayRunOn(TidemarkError):
    """The job for {key} is gone, but the Spark Connect server at {server} has not confirmed the end of its work. It
    counts as running until {deadline}. A retry is safe: each statement still happens once.
    """


def from_record(record: ErrorRecord) -> TidemarkError:
    """The error that `to_record` wrote. If this release does not know its class, it is a `JobFailed`."""
    for kind in _all_errors(TidemarkError):
        if kind.__name__ == record.error:
            return kind(**record.facts)
    return JobFailed(error=record.error, message=record.message)


def _all_errors(root: type[TidemarkError]) -> list[type[TidemarkError]]:
    return [root, *(found for child in root.__subclasses__() for found in _all_errors(child))]
