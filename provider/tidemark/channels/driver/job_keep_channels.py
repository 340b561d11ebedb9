"""The KEEP_CHANNELS job: idle channels leave their tables, old rows their history, and small files become large."""

from __future__ import annotations

from datetime import datetime, timedelta

from tidemark.channels.driver.client import IngestClient
from tidemark.channels.driver.job_client import client_of_job
from tidemark.channels.model.jobs import KeepChannels, KeptChannels, KeptTable
from tidemark.channels.planning.history import HISTORY_DAY, HISTORY_SUFFIX
from tidemark.errors import TableNotFound
from tidemark.jobs.context import JobContext
from tidemark.jobs.run import utc_now
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.tables import resolve
from tidemark.sql.statements import path_name

__all__ = ["keep_channels"]

_HISTORY_KEPT = timedelta(days=30)


def keep_channels(job: JobContext, request: KeepChannels) -> KeptChannels:
    """Sweep and compact the tables, one after the other. A second run finds nothing to do.

    Raises TableNotFound, TableNotSupported, CommitsMayBeLost; tables before the failing one are done.
    """
    with client_of_job(job, request.keeper, request.lake_root, only_writer=request.only_writer) as client:
        return KeptChannels(tuple(_keep(job, request, client, table) for table in request.tables))


def _keep(job: JobContext, request: KeepChannels, client: IngestClient, table: str) -> KeptTable:
    job.stop_if_due()
    now = utc_now()
    swept = client.sweep(table, idle_since=now - timedelta(days=request.idle_days))
    idle = client.idle_channels(table, idle_since=now - timedelta(days=request.warn_days))
    uri, _ = resolve(table, request.lake_root, job.options)
    _trim_history(job, uri + HISTORY_SUFFIX, before=now - _HISTORY_KEPT, compact=request.compact)
    removed, added = _compacted(job, uri) if request.compact else (0, 0)
    job.progress.say(f"{table}: {len(swept)} idle channels removed, {removed} files became {added}")
    return KeptTable(table, tuple(swept), tuple(idle), files_removed=removed, files_added=added)


def _trim_history(job: JobContext, uri: str, *, before: datetime, compact: bool) -> None:
    """Remove the history's old days. They are partitions, so that no commit of a minute conflicts."""
    try:
        DeltaLog.open(uri, job.options)
    except TableNotFound:
        return
    job.session.sql(f"DELETE FROM {path_name(uri)} WHERE {HISTORY_DAY} < DATE '{before.date()}'").collect()
    if compact:
        _compacted(job, uri)


def _compacted(job: JobContext, uri: str) -> tuple[int, int]:
    """Numbers of files that OPTIMIZE removed and added. It changes no row, so streams see none of it."""
    (done,) = job.session.sql(f"OPTIMIZE {path_name(uri)}").collect()
    return int(done.metrics.numFilesRemoved), int(done.metrics.numFilesAdded)
