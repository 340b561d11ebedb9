"""Running one job in an existing Spark session. Its answer has the error, if any."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tidemark.errors import JobError, TidemarkError
from tidemark.jobs.context import JobContext
from tidemark.jobs.entries import entry_of, request_type
from tidemark.jobs.failures import named_failure
from tidemark.jobs.files import exists, in_a_store
from tidemark.jobs.progress import Progress, print_line
from tidemark.jobs.spark_work import work_in
from tidemark.jobs.watch import SECONDS_BETWEEN_CHECKS, SECONDS_BETWEEN_REQUESTS, Watch
from tidemark.model.codec import from_plain, to_plain
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.source_address import SourceAddress
from tidemark.model.source_connection import SourceConnection

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["run"]


def utc_now() -> datetime:
    """The wall clock in UTC, as deadlines have it."""
    return datetime.now(UTC)


def run(
    spark: SparkSession,
    spec: JobSpec,
    *,
    options: Mapping[str, str] | None = None,
    source: SourceAddress | SourceConnection | None = None,
    clock: Callable[[], datetime] = utc_now,
    say: Callable[[str], None] = print_line,
    end: Callable[[JobError], None] | None = None,
    is_left: Callable[[], bool] = lambda: False,
) -> JobResult:
    """The answer to `spec`. Every failure is an ErrorRecord in it.

    The job gets a session of its own. A session of Spark Connect is used as it is, and must be the job's own.
    `options`: storage options of the lake; `source`: the database or connection that the job reads. `end` ends the
    process if the job does not stop at its deadline; None if the process is not ours. `is_left`: whether nobody waits
    for the job, which then stops as if it was cancelled. Idempotent: each kind of job describes its second run.
    """
    work = work_in(spark, f"tidemark {spec.result_uri}")
    pause = SECONDS_BETWEEN_REQUESTS if in_a_store(spec.cancel_uri) else SECONDS_BETWEEN_CHECKS
    watch = Watch(spec, lambda: is_left() or exists(spec.cancel_uri), work.cancel, clock, end, pause=pause, say=say)
    with work, watch, Progress(work.active_stages, say) as progress:
        job = JobContext(work.session, spec, dict(options or {}), progress, utc_now(), watch.stop_if_due, source)
        try:
            watch.stop_if_due()
            entry = entry_of(spec.entry)
            return JobResult(to_plain(entry(job, from_plain(request_type(entry), spec.request))))
        except TidemarkError as error:
            return JobResult(error=error.to_record())
        except Exception as error:  # noqa: BLE001 - the edge of the process: a user's function may raise anything
            reason = watch.due()
            return JobResult(error=(reason or named_failure(error)).to_record())
