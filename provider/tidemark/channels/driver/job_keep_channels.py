"""The KEEP_CHANNELS job: upkeep of tables with channels."""

from __future__ import annotations

from datetime import timedelta

from tidemark.channels.driver.job_client import client_of_job
from tidemark.channels.driver.keeping import Upkeeper
from tidemark.channels.model.jobs import KeepChannels, KeptChannels, KeptTable
from tidemark.jobs.context import JobContext
from tidemark.jobs.run import utc_now
from tidemark.lake.tables import resolve

__all__ = ["keep_channels"]


def keep_channels(job: JobContext, request: KeepChannels) -> KeptChannels:
    """Sweep and compact the tables, one after the other. A second run finds nothing to do.

    Raises TableNotFound, TableNotSupported, CommitsMayBeLost; tables before the failing one are done.
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
        return KeptChannels(tuple(_keep(job, request, upkeeper, table) for table in request.tables))


def _keep(job: JobContext, request: KeepChannels, upkeeper: Upkeeper, table: str) -> KeptTable:
    job.stop_if_due()
    uri, _ = resolve(table, request.lake_root, job.options)
    kept = upkeeper.keep(table, uri, utc_now())
    if table in request.log_hours:
        upkeeper.keep_log(uri, request.log_hours[table])
    said = f"{len(kept.swept)} idle channels removed, {kept.files_removed} files became {kept.files_added}"
    job.progress.say(f"{table}: {said}")
    return kept
