"""The KEEP_CHANNELS job: upkeep of tables with channels."""

from __future__ import annotations

from datetime import timedelta

from tidemark.channels.driver.job_client import client_of_job
from tidemark.channels.driver.keeping import Upkeeper
from tidemark.channels.model.jobs import KeepChannels, KeptChannels, KeptTable
from tidemark.errors import CommitsMayBeLost, JobCancelled, JobDeadlineExceeded, TidemarkError
from tidemark.jobs.context import JobContext
from tidemark.jobs.failures import named_failure
from tidemark.jobs.run import utc_now
from tidemark.lake.tables import resolve

__all__ = ["keep_channels"]


def keep_channels(job: JobContext, request: KeepChannels) -> KeptChannels:
    """Sweep and compact the tables, one after the other. A second run finds nothing to do.

    A table that fails lets the others be done. Raises TableNotFound, TableNotSupported, CommitsMayBeLost if it is the
    only one. With `skip_when_unsafe` the last of these passes over the table.
    """
    with client_of_job(job, request.keeper, request.lake_root, only_writer=request.only_writer) as client:
        upkeeper = Upkeeper(
            job.session,
            client,
            job.options,
            idle=timedelta(days=request.idle_days),
            warn=timedelta(days=request.warn_days),
            compact=request.compact,
        )
        kept: list[KeptTable] = []
        failed: dict[str, str] = {}
        unsafe: dict[str, str] = {}
        for table in request.tables:
            try:
                kept.append(_keep(job, request, upkeeper, table))
            except (JobCancelled, JobDeadlineExceeded):
                raise
            except Exception as error:  # the edge of a table: whatever a Spark action raises
                known = error if isinstance(error, TidemarkError) else named_failure(error)
                passes = request.skip_when_unsafe and isinstance(known, CommitsMayBeLost)
                if len(request.tables) == 1 and not passes:
                    raise
                said = f"{type(known).__name__}: {known}"
                (unsafe if passes else failed)[table] = said
                job.progress.say(f"{table} was not kept: {said}")
        return KeptChannels(tuple(kept), failed, unsafe)


def _keep(job: JobContext, request: KeepChannels, upkeeper: Upkeeper, table: str) -> KeptTable:
    job.stop_if_due()
    uri, _ = resolve(table, request.lake_root, job.options)
    kept = upkeeper.keep(table, uri, utc_now())
    if table in request.log_hours:
        upkeeper.keep_log(uri, request.log_hours[table])
    said = f"{len(kept.swept)} idle channels removed, {kept.files_removed} files became {kept.files_added}"
    job.progress.say(f"{table}: {said}")
    return kept
