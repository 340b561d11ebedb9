"""Batches of files, each loaded by one commit of the target.

1. A batch is planned: its files, statement and number are stored in the table of files.
2. An attempt reads the files and stores a result for each. Files that cannot be read are found, and left out by the
   next attempt.
3. It appends the good rows. The commit has the batch's number as Delta's transaction, and the attempt in its mark.
4. The batch is done: the attempt that the target shows, and the version.

A run that dies leaves a batch that is not done. The next run of any kind begins with it: at 4 if the target has its
number, else at 2. Two runs of one batch write its rows once.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from tidemark.delivery.driver.exactly_once import no_rows, until_committed
from tidemark.errors import (
    BatchMissing,
    CopyRefused,
    InvalidArgument,
    LogIncomplete,
    NotYetSupported,
    SqlCompilationError,
    TableNotFound,
)
from tidemark.failpoints import failpoint
from tidemark.jobs.settings import APP_ID, TXN_VERSION, USER_METADATA, under
from tidemark.jobs.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog
from tidemark.pipes.driver.attempts import Attempts
from tidemark.pipes.driver.files_table import FilesTable
from tidemark.pipes.driver.new_columns import drop_not_null
from tidemark.pipes.driver.prepare import FileToLoad, Preparation, Prepared, files_to_load
from tidemark.pipes.driver.staging import READ_SETTINGS
from tidemark.pipes.driver.target import Target, open_target
from tidemark.pipes.driver.unreadable import GONE
from tidemark.pipes.model.copying import ErrorMode
from tidemark.pipes.model.events import Batch, Event
from tidemark.pipes.model.files import FileReport, FileStatus
from tidemark.pipes.model.load_mark import LoadMark, load_mark_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["BatchRunner", "LoadedBatch", "failed_first"]

_CANNOT_RUN = (CopyRefused, SqlCompilationError, InvalidArgument, NotYetSupported, TableNotFound)
_LOAD_AGAIN = "Run the COPY statement again, or queue the files of the pipe with ALTER PIPE … REFRESH."
_CHANGED_LATE = "it changed while it was loaded; its rows are in the table, and rows and size here are those of before"


def _new_attempt() -> str:
    return uuid.uuid4().hex


def _nothing(batch: Batch) -> None:
    pass


@dataclass(frozen=True)
class LoadedBatch:
    """A batch that is done. `version`: the target's with its rows; None: it has none."""

    reports: tuple[FileReport, ...]
    version: int | None


class _InTarget(NamedTuple):
    """A batch in the target, and the target's version and id. `attempt`: the one that has written it, None if its
    commit has left the log.
    """

    attempt: str | None
    version: int
    table_id: str


@dataclass(frozen=True)
class BatchRunner:
    """Loads planned batches of one table of files. `given_up`: called with a batch that no attempt has loaded or can
    load, before its end is stored. It is called again if a run dies in between.
    """

    spark: SparkSession
    files: FilesTable
    options: Mapping[str, str] = field(repr=False)
    workspace: Workspace
    clock: Callable[[], datetime]
    say: Callable[[str], None]
    stop_if_due: Callable[[], None]
    given_up: Callable[[Batch], None] = _nothing
    new_attempt: Callable[[], str] = _new_attempt

    def run(self, batch: Batch, files: pa.Table | None = None) -> LoadedBatch:
        """Load the batch, or finish what an earlier run began. A second run writes no row again.

        `files`: its files, if this run has just planned it.

        Raises BatchMissing, CopyRefused, TableNotFound, and what Spark raises for failures that are not of a file.
        """
        there = None if files is not None else self._committed(batch)
        planned = files_to_load(self.files.files_of(batch.number) if files is None else files)
        if there is not None:
            attempt = there.attempt or self.files.last_attempt(batch.number)
            reports = self.files.reports_of(batch.number, attempt)
            return self._ended(batch, there._replace(attempt=attempt), reports)
        tries = Attempts(f"batch {batch.number}", batch.load.location, lambda: self._preparation(batch), self.say)
        return tries.until_read(planned, lambda unread: self._try(batch, planned, unread))

    def _preparation(self, batch: Batch) -> Preparation:
        target = open_target(batch.load, self.options)
        return Preparation(self.spark, batch.load, target, self.options, self.workspace, self.clock(), self.stop_if_due)

    def _try(self, batch: Batch, planned: Sequence[FileToLoad], unread: Mapping[str, str]) -> LoadedBatch:
        preparation, attempt = self._preparation(batch), self.new_attempt()
        target = preparation.target
        self.say(f"batch {batch.number}: reading {len(planned)} files, {sum(f.size or 0 for f in planned):,} bytes")
        prepared = preparation.prepared(planned, unread)
        self.stop_if_due()
        self.files.append([_result(batch, attempt, report) for report in prepared.reports], self.clock())
        failpoint("load.results")
        if prepared.rows is not None:
            drop_not_null(self.spark, target, prepared.lost)
        self._append(batch, attempt, target, prepared.rows)
        failpoint("load.appended")
        found = self._required(batch, target)
        if found.attempt != attempt:
            reports = self.files.reports_of(batch.number, found.attempt)
            return self._ended(batch, found, reports)
        changed = _changed_late(preparation, planned, prepared)
        if not changed:
            return self._ended(batch, found, prepared.reports)
        again = self.new_attempt()
        reports = tuple(changed.get(report.file, report) for report in prepared.reports)
        self.files.append([_result(batch, again, report) for report in reports], self.clock())
        return self._ended(batch, found._replace(attempt=again), reports)

    def finish(self, batch: Batch) -> LoadedBatch | None:
        """Load the batch of an earlier statement, or give it up if that cannot run any more: None.

        Raises BatchMissing, and what Spark raises for failures that are not of a file.
        """
        try:
            done = self.run(batch)
        except _CANNOT_RUN as error:
            self.say(f"giving up batch {batch.number} of the run {batch.run}, which cannot be loaded: {error}")
            done = self._given_up(batch)
        return done if done.reports else None

    def _given_up(self, batch: Batch) -> LoadedBatch:
        """The end of a batch whose statement cannot run: no attempt can write its rows any more.

        A second run, or one after an attempt that has written them, ends it by what the target shows. The empty attempt
        has no reports. Without a target there is nothing to bar.
        """
        try:
            target = open_target(batch.load, self.options)
        except TableNotFound:
            return self._without_rows(batch, None)
        before = DeltaLog.open(batch.load.path, self.options).state()
        is_barred = before.transactions.get(self.files.app_id, 0) >= batch.number
        self._append(batch, self.new_attempt(), target, None)
        # Without the number up to there, its commit is a later one; earlier ones may have left the log.
        found = self._required(batch if is_barred else replace(batch, base_version=before.version), target)
        return self._ended(batch, found, self.files.reports_of(batch.number, found.attempt))

    def _without_rows(self, batch: Batch, table_id: str | None) -> LoadedBatch:
        self.given_up(batch)
        self.files.end(batch.number, None, None, self.clock(), table_id=table_id, aborted=True)
        return LoadedBatch((), None)

    def _ended(self, batch: Batch, there: _InTarget, reports: tuple[FileReport, ...]) -> LoadedBatch:
        """The end of the batch is stored. A batch without rows has no version, and one without reports is given up."""
        if not reports:
            return self._without_rows(batch, there.table_id)
        with_rows = there.version if any(report.rows_loaded for report in reports) else None
        aborted = _is_aborted(batch, reports)
        at = self.clock()
        self.files.end(batch.number, there.attempt, with_rows, at, table_id=there.table_id, aborted=aborted)
        return LoadedBatch(reports, with_rows)

    def _append(self, batch: Batch, attempt: str, target: Target, rows: DataFrame | None) -> None:
        """Append the rows; without rows an empty commit with the batch's number, which bars other attempts."""
        mark = LoadMark(self.files.id, batch.number, attempt)
        settings = {
            **READ_SETTINGS,
            APP_ID: self.files.app_id,
            TXN_VERSION: str(batch.number),
            USER_METADATA: mark.to_text(),
        }
        evolves = batch.load.options.enable_schema_evolution
        given = no_rows(self.spark, target.path, target.schema) if rows is None else rows
        with under(self.spark, settings):
            until_committed()(_save, given, target.path, evolves)

    def _required(self, batch: Batch, target: Target) -> _InTarget:
        """The batch as the target shows it. Raises BatchMissing."""
        there = self._committed(batch)
        if there is None:
            problem = "the table was replaced or set back while files were loaded into it"
            raise _missing(batch, problem, "The next run loads the files again.")
        return there

    def _committed(self, batch: Batch) -> _InTarget | None:
        """The batch in the target; None if it has none of its rows.

        A target with a later batch and without this one bars its rows. Then the batch is ended: BatchMissing.
        """
        log = DeltaLog.open(batch.load.path, self.options)
        state = log.state()
        if state.transactions.get(self.files.app_id, 0) < batch.number:
            return None
        base, head = batch.base_version, state.version
        try:
            found = self._commit_of(batch, log, base, head)
        except LogIncomplete:
            self.say(f"batch {batch.number}: the log no longer has its commit")
            return _InTarget(None, head, state.table_id)
        with suppress(LogIncomplete):  # a table that was created again since the plan has fewer versions
            found = found or self._commit_of(batch, log, -1, min(base, head))
        if found is not None:
            return _InTarget(found[0], found[1], state.table_id)
        self.files.end(batch.number, None, None, self.clock(), table_id=state.table_id, aborted=True)
        raise _missing(batch, "the table has a later batch, so Delta refuses this one", _LOAD_AGAIN)

    def _commit_of(self, batch: Batch, log: DeltaLog, after: int, through: int) -> tuple[str, int] | None:
        """The attempt and the version of the batch's commit in that range. Raises LogIncomplete."""
        for commit in log.commits(after, through):
            mark = load_mark_of(commit.user_metadata)
            if mark is not None and (mark.files, mark.batch) == (self.files.id, batch.number):
                return mark.attempt, commit.version
        return None


def _missing(batch: Batch, problem: str, instead: str) -> BatchMissing:
    return BatchMissing(batch=batch.number, table=batch.load.table, problem=problem, instead=instead)


def _is_aborted(batch: Batch, reports: Sequence[FileReport]) -> bool:
    """Whether an error of a file has ended the statement."""
    aborts = batch.load.options.on_error.mode is ErrorMode.ABORT_STATEMENT
    return aborts and any(report.status is FileStatus.LOAD_FAILED for report in reports)


def _changed_late(preparation: Preparation, planned: Sequence[FileToLoad], prepared: Prepared) -> dict[str, FileReport]:
    """Reports, with the reason, of files that changed while the append read them. A file that is gone was read whole.

    Their rows cannot be taken back. A run that dies before it has stored these reports leaves those of before.
    """
    if prepared.staged is not None or prepared.rows is None:
        return {}
    reports = {report.file: report for report in prepared.reports if report.status.has_rows}
    changed = preparation.changed([file for file in planned if file.name in reports])
    return {name: replace(reports[name], system_error=_CHANGED_LATE) for name, why in changed.items() if why != GONE}


def _save(rows: DataFrame, path: str, evolves: bool) -> None:
    writer = rows.write.format("delta").mode("append")
    (writer.option("mergeSchema", "true") if evolves else writer).save(path)


def _result(batch: Batch, attempt: str, report: FileReport) -> Mapping[str, Any]:
    facts = asdict(report)
    del facts["received_at"], facts["loaded_at"]
    return {
        **facts,
        "status": report.status.value,
        "event": Event.RESULT.value,
        "batch": batch.number,
        "attempt": attempt,
    }


def failed_first(reports: Sequence[FileReport]) -> list[FileReport]:
    """Reports of files with errors, those without rows first."""
    bad = [report for report in reports if report.errors_seen or report.system_error]
    return sorted(bad, key=lambda report: (report.status.has_rows, report.file))
