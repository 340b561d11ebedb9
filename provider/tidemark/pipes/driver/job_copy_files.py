"""The COPY_FILES job: a COPY INTO statement."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa

from tidemark.errors import CopyAborted
from tidemark.failpoints import failpoint
from tidemark.jobs.context import JobContext
from tidemark.jobs.run import utc_now
from tidemark.pipes.driver.batches import BatchRunner, LoadedBatch
from tidemark.pipes.driver.files_table import FilesTable
from tidemark.pipes.driver.found_files import Listed, list_files, named_files
from tidemark.pipes.driver.histories import open_history
from tidemark.pipes.driver.planning_batches import certain, chosen, collected, in_order, loaded_files, not_known
from tidemark.pipes.driver.prepare import files_to_load
from tidemark.pipes.driver.purge import purge_files
from tidemark.pipes.driver.target import Target, open_target
from tidemark.pipes.driver.validation import validated
from tidemark.pipes.model.copying import ErrorMode, Load, Validation, ValidationMode
from tidemark.pipes.model.events import COPY_KEPT, COPY_SUFFIX, Batch
from tidemark.pipes.model.files import FileReport, FileStatus
from tidemark.pipes.model.jobs import CopiedFiles, CopyFiles
from tidemark.pipes.planning.late_files import late_note

__all__ = ["copy_files"]

_MOST_FILES = 1_000_000


def copy_files(job: JobContext, request: CopyFiles) -> CopiedFiles:
    """Load the files of the statement that were not loaded before, by one commit.

    A second run with the same key continues the plan of the first one, or returns its report. A batch that another
    run left is finished first. A table that was created again has loaded nothing.

    Raises BatchMissing, CopyAborted, CopyRefused, FilesNotFound, StageLocationMissing, TableNotFound.
    """
    load = request.load
    target = open_target(load, job.options)
    with job.new_workspace("copy") as workspace:
        if request.validation is not None:
            found = _to_validate(job, load, target, request.validation)
            return validated(job, load, target, found, request.validation, workspace)
        table = FilesTable.open(job.session, load.path + COPY_SUFFIX, job.options, kept=COPY_KEPT)
        runner = BatchRunner(job.session, table, job.options, workspace, utc_now, job.progress.say, job.stop_if_due)
        done = _of_run(table, runner, request.key, target)
        while done is None:
            left, number = table.turn()
            if left is not None:
                job.progress.say(f"finishing batch {left.number}, which the run {left.run} began")
                _purge(job, table, left, runner.finish(left))
                continue
            planned = _planned(job, request, table, target, number)
            if planned is None:
                return CopiedFiles(())
            batch, files = planned
            if batch is not None:  # otherwise another run has planned a batch of its number
                done = runner.run(batch, files)
        table.trim(utc_now())
    if load.options.purge and (known := table.batch_of_run(request.key, utc_now())) is not None:
        _purge(job, table, known.batch, done)
    _require_loaded(load, done.reports)
    return CopiedFiles(done.reports, done.version)


def _of_run(table: FilesTable, runner: BatchRunner, run: str, target: Target) -> LoadedBatch | None:
    """The last batch of the run, finished; None if it has none, or if its statement cannot run any more. None, too, if
    an error of the files ended it: they may be others by now. So it is if another table has its rows.
    """
    known = table.batch_of_run(run, utc_now())
    if known is None or known.aborted or known.table_id not in (None, target.metadata.table_id):
        return None
    if not known.is_done:
        return runner.finish(known.batch)
    return LoadedBatch(table.reports_of(known.batch.number, known.attempt), known.version)


def _purge(job: JobContext, table: FilesTable, batch: Batch, done: LoadedBatch | None) -> None:
    """Remove the files of the batch that were loaded, if its statement has PURGE."""
    load = batch.load
    if load.options.purge and done is not None and done.version is not None:
        planned = files_to_load(table.files_of(batch.number))
        purge_files(load, job.options, planned, done.reports, job.progress.say)


def _planned(
    job: JobContext, request: CopyFiles, table: FilesTable, target: Target, number: int
) -> tuple[Batch | None, pa.Table] | None:
    """The batch of this statement, planned; None if there is no file to load.

    Its number was taken before the files are looked for, so that no other run has planned the same files since.
    """
    now = utc_now()
    limit, new = request.load.options.size_limit, _new(job, request.load, target, table, now)
    take = chosen(new, _MOST_FILES, limit, beyond=True)
    if not take.files.num_rows:
        return None
    batch = Batch(number, request.load, target.version, request.key)
    stored = table.plan(batch, take.files, None, now, partial=False)
    failpoint("load.planned")
    return (batch if stored else None), take.files


def _listed(job: JobContext, load: Load) -> Listed:
    missing_ok = load.options.on_error.mode is not ErrorMode.ABORT_STATEMENT
    if load.files:
        found = named_files(load, job.options, load.files, missing_ok=missing_ok)
    else:
        found = list_files(load, job.options)
    found.say_refused(job.progress.say)
    job.progress.say(f"{found.count} files at {load.location}/{load.prefix}")
    return found


def _to_validate(job: JobContext, load: Load, target: Target, validation: Validation) -> pa.Table:
    """The files that would be loaded. RETURN_ALL_ERRORS looks at those that were loaded before, too."""
    if validation.mode is ValidationMode.ALL_ERRORS:
        return in_order(_listed(job, load).table)
    table = open_history(job.session, load.path + COPY_SUFFIX, job.options, COPY_KEPT)
    return _new(job, load, target, table, utc_now())


def _new(job: JobContext, load: Load, target: Target, table: FilesTable | None, now: datetime) -> pa.Table:
    """The files that the history does not know, or all of them with FORCE. Files that it may have forgotten are left
    out; a history that is younger than that has forgotten none. `table`: None if there is no history.
    """
    listed = _listed(job, load)
    if load.options.force or table is None or table.is_new:
        return in_order(listed.table)
    found = listed.frame(job.session)
    new = collected(not_known(found, loaded_files(table, now, into=target.metadata.table_id, location=load.location)))
    if load.options.load_uncertain_files:
        return new
    sure = certain(table, new, now)
    if skipped := new.num_rows - sure.num_rows:
        job.progress.say(late_note(skipped, COPY_KEPT, "LOAD_UNCERTAIN_FILES = TRUE loads them"))
    return sure


def _require_loaded(load: Load, reports: tuple[FileReport, ...]) -> None:
    """Nothing, or CopyAborted with the first error of the statement."""
    if load.options.on_error.mode is not ErrorMode.ABORT_STATEMENT:
        return
    failed = [report for report in reports if report.status is FileStatus.LOAD_FAILED]
    if failed:
        first = failed[0]
        raise CopyAborted(
            table=load.table,
            place=first.place,
            problem=(first.system_error or first.first_error or "").rstrip("."),
        )
