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
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from tidemark.delivery.driver.exactly_once import no_rows, until_committed
from tidemark.errors import LogIncomplete, TargetChanged
from tidemark.failpoints import failpoint
from tidemark.jobs.settings import APP_ID, TXN_VERSION, USER_METADATA, under
from tidemark.jobs.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog
from tidemark.pipes.driver.attempts import Attempts
from tidemark.pipes.driver.files_table import FilesTable
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

_CHANGED_LATE = "it changed while it was loaded; its rows are in the table, and rows and size here are those of before"


def _new_attempt() -> str:
    return uuid.uuid4().hex


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
    """Loads planned batches of one table of files."""

    spark: SparkSession
    files: FilesTable
    options: Mapping[str, str] = field(repr=False)
    workspace: Workspace
    clock: Callable[[], datetime]
    say: Callable[[str], None]
    stop_if_due: Callable[[], None]
    new_attempt: Callable[[], str] = _new_attempt

    def run(self, batch: Batch, files: pa.Table | None = None) -> LoadedBatch:
        """Load the batch, or finish what an earlier run began. A second run writes no row again.

        `files`: its files, if this run has just planned it.

        Raises CopyRefused, TableNotFound, and what Spark raises for failures that are not of a file.
        """
        there = None if files is not None else self._committed(batch)
        planned = files_to_load(self.files.files_of(batch.number) if files is None else files)
        if there is not None:
            attempt = there.attempt or self.files.last_attempt(batch.number)
            reports = self.files.reports_of(batch.number, attempt)
            return self._ended(batch, there._replace(attempt=attempt), reports)
        tries = Attempts(
            f"batch {batch.number}", batch.load.location, lambda: self._preparation(batch), self.say, self.stop_if_due
        )
        return tries.until_read(planned, lambda unread: self._try(batch, planned, unread))

    def _preparation(self, batch: Batch) -> Preparation:
        target = open_target(batch.load, self.options)
        return Preparation(self.spark, batch.load, target, self.options, self.workspace, self.clock())

    def _try(self, batch: Batch, planned: Sequence[FileToLoad], unread: Mapping[str, str]) -> LoadedBatch:
        preparation, attempt = self._preparation(batch), self.new_attempt()
        target = preparation.target
        self.say(f"batch {batch.number}: reading {len(planned)} files, {sum(f.size or 0 for f in planned):,} bytes")
        prepared = preparation.prepared(planned, unread)
        self.stop_if_due()
        self.files.append([_result(batch, attempt, report) for report in prepared.reports], self.clock())
        failpoint("load.results")
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

    def give_up(self, batch: Batch) -> LoadedBatch:
        """End a batch whose statement cannot run: no attempt can write its rows any more.

        A second run, or one after an attempt that has written them, ends it by what the target shows.
        """
        target = open_target(batch.load, self.options)
        attempt = self.new_attempt()
        self._append(batch, attempt, target, None)
        found = self._required(batch, target)
        if found.attempt == attempt:
            self.files.end(batch.number, None, None, self.clock(), table_id=found.table_id, aborted=True)
            return LoadedBatch((), None)
        return self._ended(batch, found, self.files.reports_of(batch.number, found.attempt))

    def _ended(self, batch: Batch, there: _InTarget, reports: tuple[FileReport, ...]) -> LoadedBatch:
        """The end of the batch is stored. A batch without rows has no version."""
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
        """The batch as the target shows it. Raises TargetChanged."""
        there = self._committed(batch)
        if there is None:
            problem = "it was replaced or set back while files were loaded into it"
            raise TargetChanged(target=target.name, problem=problem)
        return there

    def _committed(self, batch: Batch) -> _InTarget | None:
        """The batch in the target; None if it has none of its rows."""
        log = DeltaLog.open(batch.load.path, self.options)
        state = log.state()
        if state.transactions.get(self.files.app_id, 0) < batch.number:
            return None
        try:
            for commit in log.commits(batch.base_version, state.version):
                mark = load_mark_of(commit.user_metadata)
                if mark is not None and (mark.files, mark.batch) == (self.files.id, batch.number):
                    return _InTarget(mark.attempt, commit.version, state.table_id)
        except LogIncomplete:
            self.say(f"batch {batch.number}: the log no longer has its commit")
        return _InTarget(None, state.version, state.table_id)


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
