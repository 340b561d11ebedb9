"""The QUEUE_FILES job: files for the queue of a pipe, by name or by a listing."""

from __future__ import annotations

from tidemark.jobs.context import JobContext
from tidemark.jobs.run import utc_now
from tidemark.pipes.driver.files_table import FilesTable
from tidemark.pipes.driver.found_files import list_files, named_files
from tidemark.pipes.driver.pipe_queue import PipeQueue
from tidemark.pipes.model.events import KEPT
from tidemark.pipes.model.jobs import QueuedFiles, QueueFiles

__all__ = ["queue_files"]


def queue_files(job: JobContext, request: QueueFiles) -> QueuedFiles:
    """Put files into the queue; a run of the pipe loads them. A second run finds them there.

    A refresh takes files that the pipe did not load, also those that failed, but none that COPY INTO has loaded.
    Raises StageLocationMissing.
    """
    table = FilesTable.open(job.session, request.queue, job.options, kept=KEPT)
    queue = PipeQueue(job.session, table, request.load, job.options)
    if request.files:
        found = named_files(request.load, job.options, request.files, missing_ok=True)
    else:
        found = list_files(request.load, job.options, prefix=request.prefix, modified_after=request.modified_after)
    found.say_refused(job.progress.say)
    now = utc_now()
    count = queue.take(found, request.source, now, job.progress.say)
    job.progress.say(f"{count} files are new in the queue of {request.pipe}, {found.count - count} were known")
    return QueuedFiles(count, found.count - count, now if count else None)
