"""The COPY_FILES job: a COPY INTO statement."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from tidemark.errors import CopyAborted
from tidemark.failpoints import failpoint
from tidemark.jobs.context import JobContext
from tidemark.jobs.run import utc_now
from tidemark.jobs.workspace import Workspace
from tidemark.pipes.driver.batches import BatchRunner
from tidemark.pipes.driver.files_table import FilesTable, KnownBatch
from tidemark.pipes.driver.found_files import Listed, list_files, named_files
from tidemark.pipes.driver.planning_batches import loaded_files, not_known, oldest
from tidemark.pipes.driver.purge import purge_files
from tidemark.pipes.driver.target import open_target
from tidemark.pipes.driver.validation import validated
from tidemark.pipes.model.copying import ErrorMode, Load
from tidemark.pipes.model.events import COPY_SUFFIX, Batch
from tidemark.pipes.model.files import FileReport, FileStatus, place_in_words
from tidemark.pipes.model.jobs import CopiedFiles, CopyFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["copy_files"]

_KEPT = timedelta(days=64)
_MOST_FILES = 1_000_000


def copy_files(job: JobContext, request: CopyFiles) -> CopiedFiles:
    """Load the files of the statement that were not loaded before, by one commit.

    A second run with the same key goes on with what the first one planned, or returns its report. A batch that another
    run left is finished first. Raises CopyAborted, CopyRefused, FilesNotFound, StageLocationMissing, TableNotFound.
    """
    load = request.load
    target = open_target(load, job.options)
    with job.new_workspace("copy") as workspace:
        if request.validation is not None:
            listed = _listed(job, load)
            return validated(job, load, target, listed, request.validation, workspace)
        table = FilesTable.open(job.session, load.path + COPY_SUFFIX, job.options, kept=_KEPT)
        runner = _runner(job, table, workspace)
        known = _batch_of_run(table, request.key)
        if known is not None and known.is_done:
            return CopiedFiles(table.reports_of(known.batch.number, known.attempt, utc_now()), known.version)
        batch = known.batch if known is not None else _planned(job, request, table, runner, target.version)
        if batch is None:
            return CopiedFiles(())
        done = runner.run(batch)
    if load.options.purge and done.version is not None:
        purge_files(load, job.options, done.reports, job.progress.say)
    _require_loaded(load, done.reports)
    return CopiedFiles(done.reports, done.version)


def _runner(job: JobContext, table: FilesTable, workspace: Workspace) -> BatchRunner:
    return BatchRunner(job.session, table, job.options, workspace, utc_now, job.progress.say, job.stop_if_due)


def _batch_of_run(table: FilesTable, run: str) -> KnownBatch | None:
    """The last batch of the run, unless it was ended by an error of the files: they may be others by now."""
    found = [known for known in table.batches(utc_now()) if known.batch.run == run]
    return found[-1] if found and not found[-1].aborted else None


def _planned(job: JobContext, request: CopyFiles, table: FilesTable, runner: BatchRunner, version: int) -> Batch | None:
    """The batch of this statement, planned; None if there is no file to load."""
    while True:
        now = utc_now()
        left = table.open_batch()
        if left is not None:
            job.progress.say(f"finishing batch {left.number}, which the run {left.run} began")
            runner.run(left)
            continue
        files = _chosen(job, request.load, table, now)
        wanted, count = oldest(files, _MOST_FILES, request.load.options.size_limit)
        if count == 0:
            return None
        batch = Batch(table.next_number(), request.load, version, request.key)
        table.plan(batch, wanted, now)
        failpoint("load.planned")
        planned = _batch_of_run(table, request.key)
        if planned is not None:
            return planned.batch  # otherwise another run has planned a batch of this number


def _listed(job: JobContext, load: Load) -> Listed:
    missing_ok = load.options.on_error.mode is not ErrorMode.ABORT_STATEMENT
    if load.files:
        found = named_files(load, job.options, load.files, missing_ok=missing_ok)
    else:
        found = list_files(load, job.options)
    for file, problem in sorted(found.refused.items())[:20]:
        job.progress.say(f"left out {file}: {problem}")
    job.progress.say(f"{found.count} files at {load.location}/{load.prefix}")
    return found


def _chosen(job: JobContext, load: Load, table: FilesTable, now: datetime) -> DataFrame:
    """The files that the history does not know, or all of them with FORCE."""
    found = _listed(job, load).frame(job.session)
    if load.options.force:
        return found
    new = not_known(found, loaded_files(table, now))
    if load.options.load_uncertain_files:
        return new
    certain = new.where(F.col("modified_at") >= F.lit(now - _KEPT))
    skipped = new.count() - certain.count()
    if skipped:
        said = f"{skipped} files are older than the history of {_KEPT.days} days, and may have been loaded before"
        job.progress.say(f"{said}; LOAD_UNCERTAIN_FILES = TRUE loads them")
    return certain


def _require_loaded(load: Load, reports: tuple[FileReport, ...]) -> None:
    """Nothing, or CopyAborted with the first error of the statement."""
    if load.options.on_error.mode is not ErrorMode.ABORT_STATEMENT:
        return
    failed = [report for report in reports if report.status is FileStatus.LOAD_FAILED]
    if failed:
        first = failed[0]
        raise CopyAborted(
            table=load.table,
            place=place_in_words(first),
            problem=(first.system_error or first.first_error or "").rstrip("."),
        )
