"""The RUN_PIPE job: new files come into the queue, and batches of it are loaded."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from tidemark.failpoints import failpoint
from tidemark.jobs.context import JobContext
from tidemark.jobs.run import utc_now
from tidemark.pipes.driver.batches import BatchRunner, LoadedBatch, failed_first
from tidemark.pipes.driver.files_table import FilesTable
from tidemark.pipes.driver.found_files import Listed, list_files
from tidemark.pipes.driver.pipe_queue import KEPT, PipeQueue
from tidemark.pipes.driver.planning_batches import oldest, pending
from tidemark.pipes.driver.target import open_target
from tidemark.pipes.model.events import Batch
from tidemark.pipes.model.files import FileSource
from tidemark.pipes.model.jobs import RunPipe, RunPipeReport

__all__ = ["run_pipe"]

_MOST_FAILED = 20


def run_pipe(job: JobContext, request: RunPipe) -> RunPipeReport:
    """Finish the batch that an earlier run left, look for new files, and load batches until the queue is empty.

    A second run finds nothing to do. Raises CopyRefused, TableNotFound, StageLocationMissing, and what Spark raises for
    failures that are not of a file.
    """
    table = FilesTable.open(job.session, request.queue, job.options, kept=KEPT)
    queue = PipeQueue(job.session, table, request.load, job.options)
    done: list[LoadedBatch] = []
    with job.new_workspace(f"pipe-{request.uid}") as workspace:
        runner = BatchRunner(job.session, table, job.options, workspace, utc_now, job.progress.say, job.stop_if_due)
        left = table.open_batch()
        if left is not None:
            job.progress.say(f"finishing batch {left.number}, which an earlier run began")
            done.append(runner.run(left))
        if request.list_files:
            _look(job, request, queue, table)
        while len(done) < request.batches and (batch := _next(request, table)) is not None:
            job.stop_if_due()
            done.append(runner.run(batch))
            job.progress.say(_said(request, batch, done[-1]))
        waiting = pending(table, utc_now()).count() if done else 0
        if done:
            table.trim(utc_now())
    return _report(done, waiting)


def _look(job: JobContext, request: RunPipe, queue: PipeQueue, table: FilesTable) -> None:
    """Queue the files that are new; nothing is written if there are none."""
    now = utc_now()
    listed, full = _listed(job, request, queue, now)
    for file, problem in sorted(listed.refused.items())[:20]:
        job.progress.say(f"left out {file}: {problem}")
    if not listed.count:
        return
    found = listed.frame(job.session)
    again = _asked_again(request)
    files = (queue.to_load_again(found, now, force=request.force) if again else queue.new(found, now)).cache()
    if not files.isEmpty():
        table.append_frame(queue.queued(files, FileSource.REFRESH if again else FileSource.LISTING), now)
    files.unpersist()
    if not again and full and (listing := queue.listing_event(listed)) is not None:
        table.append_frame(listing, now)


def _asked_again(request: RunPipe) -> bool:
    """Whether the run was asked for certain files, as a refresh is."""
    return request.force or bool(request.prefix) or request.modified_after is not None


def _listed(job: JobContext, request: RunPipe, queue: PipeQueue, now: datetime) -> tuple[Listed, bool]:
    if _asked_again(request):
        after = request.modified_after
        return list_files(request.load, job.options, prefix=request.prefix, modified_after=after), False
    return queue.listed(now, timedelta(seconds=request.full_listing_seconds))


def _next(request: RunPipe, table: FilesTable) -> Batch | None:
    """The next batch, planned; None if the queue is empty. If another run planned one of its number, that one."""
    now = utc_now()
    files, count = oldest(pending(table, now), request.max_files, request.max_bytes)
    if not count:
        return None
    load = replace(request.load, files=())
    version = open_target(load, table.options).version
    table.plan(Batch(table.next_number(), load, version, request.uid), files, now)
    failpoint("load.planned")
    return table.open_batch()


def _said(request: RunPipe, batch: Batch, done: LoadedBatch) -> str:
    rows = sum(report.rows_loaded for report in done.reports)
    bad = len(failed_first(done.reports))
    return f"batch {batch.number} of {request.pipe}: {rows:,} rows of {len(done.reports)} files, {bad} with errors"


def _report(done: list[LoadedBatch], waiting: int) -> RunPipeReport:
    reports = [report for batch in done for report in batch.reports]
    loaded = [report for report in reports if report.status.has_rows]
    failed = failed_first(reports)
    return RunPipeReport(
        batches=len(done),
        files=len(reports),
        files_loaded=len(loaded),
        files_with_errors=len(failed),
        rows_loaded=sum(report.rows_loaded for report in loaded),
        bytes_loaded=sum(report.size for report in loaded),
        errors_seen=sum(report.errors_seen for report in reports),
        pending=waiting,
        version=max((batch.version for batch in done if batch.version is not None), default=None),
        failed=tuple(failed[:_MOST_FAILED]),
    )
