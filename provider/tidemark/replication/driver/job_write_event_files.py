"""The WRITE_EVENT_FILES job: events of an event log as files in Datastream's layout."""

from __future__ import annotations

from tidemark.jobs.context import JobContext
from tidemark.replication.driver.event_files import write_event_files as run_write
from tidemark.replication.model.jobs import EventFilesReport, WriteEventFiles

__all__ = ["write_event_files"]


def write_event_files(job: JobContext, request: WriteEventFiles) -> EventFilesReport:
    """A second run writes what is left. Raises what `write_event_files` of the engine does."""
    return run_write(
        job.session, job.spec.store_id, request, job.options, say=job.progress.say, stop_if_due=job.stop_if_due
    )
