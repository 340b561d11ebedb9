"""The RUN_PIPE job: new files come into the queue, and batches of it are loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pyarrow as pa

from tidemark.failpoints import failpoint
from tidemark.jobs.context import JobContext
from tidemark.jobs.run import utc_now
from tidemark.pipes.driver.batches import BatchRunner, LoadedBatch, failed_first
from tidemark.pipes.driver.files_table import FilesTable
from tidemark.pipes.driver.found_files import FOUND_SCHEMA, Listed, list_files, named_files
from tidemark.pipes.driver.left_out import LateFiles
from tidemark.pipes.driver.pipe_queue import PipeQueue
from tidemark.pipes.driver.planning_batches import (
    certain,
    chosen,
    collected,
    in_order,
    loaded_files,
    not_known,
    pending,
    planned_by,
    seen_files,
    without,
)
from tidemark.pipes.driver.target import open_target
from tidemark.pipes.model.events import KEPT, Batch, Event
from tidemark.pipes.model.files import FileSource
from tidemark.pipes.model.jobs import RunPipe, RunPipeReport
from tidemark.pipes.planning.late_files import late_note

__all__ = ["run_pipe"]

_MOST_FAILED = 20


def run_pipe(job: JobContext, request: RunPipe) -> RunPipeReport:
    """Load batches of files until the queue of the pipe is empty.

    Announced files come into the queue first. A batch that an earlier run left is finished, and new files are looked
    for. A second run finds nothing to do, and so does a forced one with the same `run`.

    Raises BatchMissing, CopyRefused, TableNotFound, StageLocationMissing, and what Spark raises for failures that are
    not of a file.
    """
    table = FilesTable.open(job.session, request.queue, job.options, kept=KEPT)
    queue = PipeQueue(job.session, table, request.load, job.options)
    _take_notified(job, request, queue)
    late = LateFiles(table, request.load.location)
    done: list[LoadedBatch] = []
    looks = request.list_files
    waiting: int | None = None
    with job.new_workspace(f"pipe-{request.uid}") as workspace:
        runner = BatchRunner(
            *(job.session, table, job.options, workspace, utc_now, job.progress.say, job.stop_if_due),
            given_up=lambda batch: _queue_again(job, queue, batch),
        )
        while len(done) < request.batches:
            job.stop_if_due()
            left, number = table.turn()
            if left is not None:
                job.progress.say(f"finishing batch {left.number}, which another run began")
                done.extend(_finished(runner, left, request))
                waiting = None
                continue
            planned = _planned(job, request, queue, late, number, looks=looks)
            if planned is None:
                waiting = 0
                break
            if planned.batch is not None:
                waiting, looks = planned.left, False
                done.append(runner.run(planned.batch, planned.files))
                job.progress.say(_said(request, planned.batch, done[-1]))
        late.note(utc_now())
        if done:
            table.trim(utc_now())
        if waiting is None:
            waiting = pending(table, utc_now(), request.load.location).count()
    return replace(_report(done, waiting), left_out=len(late.unseen), first_left_out=next(iter(late.unseen), None))


def _take_notified(job: JobContext, request: RunPipe, queue: PipeQueue) -> None:
    """Put the announced files into the queue, so that their notifications are not needed any more."""
    if not request.notified:
        return
    found = named_files(request.load, job.options, request.notified, missing_ok=True)
    found.say_refused(job.progress.say)
    failpoint("notified.found")
    count = queue.take(found, FileSource.NOTIFICATION, utc_now(), job.progress.say)
    failpoint("notified.queued")
    job.progress.say(f"{len(request.notified)} files were announced, {count} of them are new in the queue")


def _finished(runner: BatchRunner, left: Batch, request: RunPipe) -> Sequence[LoadedBatch]:
    """The batch, loaded with the pipe's statement as it is now, so that a corrected one gets a stalled pipe going.

    A batch of another place or table keeps its own. If that cannot run any more, the batch is given up, unless the
    pipe's own table is missing. Those of its files that the pipe loads are queued again.
    """
    if (left.load.location, left.load.path) == (request.load.location, request.load.path):
        return [runner.run(replace(left, load=request.load))]
    open_target(request.load, runner.options)
    found = runner.finish(left)
    return [] if found is None else [found]


def _queue_again(job: JobContext, queue: PipeQueue, batch: Batch) -> None:
    count = queue.queue_again(batch.number, utc_now())
    job.progress.say(f"{count} files of batch {batch.number}, which was given up, are in the queue again")


@dataclass(frozen=True)
class _Planned:
    """`batch`: None if another run has planned one of its number. `left`: files that wait."""

    batch: Batch | None
    files: pa.Table
    left: int


def _planned(
    job: JobContext, request: RunPipe, queue: PipeQueue, late: LateFiles, number: int, *, looks: bool
) -> _Planned | None:
    """The next batch; None if there is no file for it.

    Its number was taken before the files are looked for, so that no other run has planned the same files since.
    """
    now = utc_now()
    waiting = (
        FOUND_SCHEMA.empty_table()
        if queue.table.is_new
        else collected(pending(queue.table, now, request.load.location))
    )
    listed, full = _listed(job, request, queue, now) if looks else (Listed(), False)
    listed.say_refused(job.progress.say)
    new = _new(job, request, queue, late, listed, now, waiting)
    listing = queue.listing_event(listed, has_channel=request.has_channel) if full else None
    take = chosen(in_order(pa.concat_tables([waiting, new])), request.max_files, request.max_bytes)
    if not take.files.num_rows:
        if listing is not None:
            queue.table.append([listing], now)
        return None
    load = replace(request.load, files=())
    batch = Batch(number, load, open_target(load, queue.table.options).version, request.run or request.uid)
    queued = without(take.left, waiting)
    stored = queue.table.plan(batch, take.files, queued, now, partial=take.left.num_rows > 0)
    failpoint("load.planned")
    if listing is not None and stored:  # its files are in the table now, so that the next one may go on behind them
        queue.table.append([listing], now)
    return _Planned(batch if stored else None, take.files, take.left.num_rows)


def _new(
    job: JobContext,
    request: RunPipe,
    queue: PipeQueue,
    late: LateFiles,
    listed: Listed,
    now: datetime,
    waiting: pa.Table,
) -> pa.Table:
    """The files of the listing that the pipe does not know; those that were asked for again, unless they are loaded.
    Files that COPY INTO has loaded are left out, and so are those that the pipe may have forgotten.
    """
    if not listed.count:
        return waiting.slice(0, 0)
    table = queue.table
    if table.is_new:
        new = in_order(listed.table)
        return new if request.force else _not_copied(request, queue, new, now)
    found = listed.frame(job.session)
    if request.force:
        again = not_known(found, planned_by(table, request.run, now)) if request.run else found
        return without(collected(again), waiting)
    place = request.load.location
    known = loaded_files(table, now, location=place) if _asked_again(request) else seen_files(table, now, place)
    new = _not_copied(request, queue, without(collected(not_known(found, known)), waiting), now)
    sure = certain(table, new, now)
    if skipped := new.num_rows - sure.num_rows:
        late.leave_out(without(new, sure), now)
        job.progress.say(late_note(skipped, KEPT))
    return sure


def _not_copied(request: RunPipe, queue: PipeQueue, files: pa.Table, now: datetime) -> pa.Table:
    """The files without those that COPY INTO has loaded, which the next listings know, too."""
    copied = queue.loaded_by_copy(files, now)
    if not copied.num_rows:
        return files
    if not _asked_again(request):
        queue.table.note(copied, Event.COPIED, request.load.location, now)
    return without(files, copied)


def _asked_again(request: RunPipe) -> bool:
    """Whether the run was asked for certain files, as a refresh is."""
    return request.force or bool(request.prefix) or request.modified_after is not None


def _listed(job: JobContext, request: RunPipe, queue: PipeQueue, now: datetime) -> tuple[Listed, bool]:
    if _asked_again(request):
        after = request.modified_after
        return list_files(request.load, job.options, prefix=request.prefix, modified_after=after), False
    return queue.listed(now, timedelta(seconds=request.full_listing_seconds), only_full=request.has_channel)


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
