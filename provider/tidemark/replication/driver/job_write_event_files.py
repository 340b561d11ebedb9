"""The WRITE_EVENT_FILES job, events of an event log as files in Datastream's layout, and FORGET_EVENT_FILES."""

from __future__ import annotations

from tidemark.jobs.context import JobContext
from tidemark.replication.driver.event_files import write_event_files as run_write
from tidemark.replication.driver.written_files import WrittenFiles
from tidemark.replication.model.jobs import (
    EventFilesReport,
    ForgetEventFiles,
    ForgottenEventFiles,
    WriteEventFiles,
)
from tidemark.replication.model.replication import LogPosition

__all__ = ["forget_event_files", "write_event_files"]


def write_event_files(job: JobContext, request: WriteEventFiles) -> EventFilesReport:
    """A second run writes what is left. Raises what `write_event_files` of the engine does."""
    return run_write(
        job.session, job.spec.store_id, request, job.options, say=job.progress.say, stop_if_due=job.stop_if_due
    )


def forget_event_files(job: JobContext, request: ForgetEventFiles) -> ForgottenEventFiles:
    """A second run finds nothing to forget. Raises EventFilesIncomplete."""
    found = WrittenFiles(job.session, job.spec.store_id, request, job.options).forget()
    return ForgottenEventFiles(None if found is None else LogPosition(found.end if found.done else found.start))
