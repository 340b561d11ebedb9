"""Batches of files, each loaded by one commit of the target.

1. A batch is planned: its files, statement and number are stored in the table of files.
2. An attempt reads the files and stores a result for each.
3. It appends the good rows. The commit has the batch's number as Delta's transaction, and the attempt in its mark.
4. The batch is done: the attempt that the target shows, and the version.

A run that dies leaves a batch that is not done. The next run, whoever's, begins with it: at 4 if the target has its
number, else at 2. Two runs of one batch write its rows once.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from tidemark.delivery.driver.exactly_once import until_committed
from tidemark.errors import DataFileUnreadable, LogIncomplete, TargetChanged
from tidemark.failpoints import failpoint
from tidemark.jobs.failures import named_failure
from tidemark.jobs.settings import APP_ID, TXN_VERSION, USER_METADATA, under
from tidemark.jobs.spark_failures import SPARK_FAILURES
from tidemark.jobs.workspace import Workspace
from tidemark.pipes.driver.files_table import ABORTED, FilesTable
from tidemark.pipes.driver.prepare import FileToLoad, Preparation, Prepared
from tidemark.pipes.driver.staging import READ_SETTINGS
from tidemark.pipes.driver.target import Target, open_target
from tidemark.pipes.model.copying import ErrorMode
from tidemark.pipes.model.events import Batch, Event
from tidemark.pipes.model.files import FileReport, FileStatus
from tidemark.pipes.model.load_mark import LoadMark, load_mark_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["BatchRunner", "LoadedBatch", "failed_first"]


def _new_attempt() -> str:
    return uuid.uuid4().hex


@dataclass(frozen=True)
class LoadedBatch:
    """A batch that is done. `version`: the target's with its rows; None: it has none. `found`: another run wrote it."""

    reports: tuple[FileReport, ...]
    version: int | None
    found: bool


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

    def run(self, batch: Batch) -> LoadedBatch:
        """Load the batch, or finish what an earlier run began. A second run writes no row again.

        Raises CopyRefused, TableNotFound, and what Spark raises for failures that are not of a file.
        """
        there = self._committed(batch)
        if there is not None:
            attempt, version = there
            attempt = attempt or self.files.last_attempt(batch.number, self.clock())
            self._end(batch, attempt, version)
            return LoadedBatch(self.files.reports_of(batch.number, attempt, self.clock()), version, found=True)
        unread: dict[str, str] = {}
        while True:
            try:
                return self._try(batch, unread)
            except SPARK_FAILURES as error:
                broken = self._broken(error, batch)
                if broken is None or broken[0] in unread:
                    raise
                unread[broken[0]] = broken[1]

    def _try(self, batch: Batch, unread: Mapping[str, str]) -> LoadedBatch:
        target = open_target(batch.load, self.options)
        now, attempt = self.clock(), self.new_attempt()
        planned = [FileToLoad(*file) for file in self.files.files_of(batch.number, now)]
        self.say(f"batch {batch.number}: reading {len(planned)} files, {sum(f.size for f in planned):,} bytes")
        preparation = Preparation(self.spark, batch.load, target, self.options, self.workspace, now)
        prepared = preparation.prepared(planned, unread)
        self.stop_if_due()
        self.files.append([_result(batch, attempt, report) for report in prepared.reports], self.clock())
        failpoint("load.results")
        version = self._append(batch, attempt, target, prepared)
        failpoint("load.appended")
        if version is None:
            self._end(batch, attempt, None, ABORTED if _is_aborted(batch, prepared.reports) else None)
            return LoadedBatch(prepared.reports, None, found=False)
        there = self._committed(batch)
        if there is None:
            problem = "it was replaced or set back while files were loaded into it"
            raise TargetChanged(target=target.name, problem=problem)
        self._end(batch, there[0], there[1])
        mine = there[0] == attempt
        reports = prepared.reports if mine else self.files.reports_of(batch.number, there[0], self.clock())
        return LoadedBatch(reports, there[1], found=not mine)

    def _append(self, batch: Batch, attempt: str, target: Target, prepared: Prepared) -> int | None:
        """Something, if rows were appended by this or another attempt; None if there are none."""
        rows = prepared.rows
        if rows is None:
            return None
        mark = LoadMark(self.files.id, batch.number, attempt)
        settings = {
            **READ_SETTINGS,
            APP_ID: self.files.app_id,
            TXN_VERSION: str(batch.number),
            USER_METADATA: mark.to_text(),
        }
        evolves = batch.load.options.enable_schema_evolution
        with under(self.spark, settings):
            until_committed()(_save, rows, target.path, evolves)
        return target.version

    def _committed(self, batch: Batch) -> tuple[str | None, int] | None:
        """The attempt and the version of the batch's rows in the target; None if it has none.

        The attempt is None if its commit has left the log.
        """
        log = open_target(batch.load, self.options).log
        state = log.state()
        if state.transactions.get(self.files.app_id, 0) < batch.number:
            return None
        try:
            for commit in log.commits(batch.base_version, state.version):
                mark = load_mark_of(commit.user_metadata)
                if mark is not None and (mark.files, mark.batch) == (self.files.id, batch.number):
                    return mark.attempt, commit.version
        except LogIncomplete:
            self.say(f"batch {batch.number}: the log no longer has its commit")
        return None, state.version

    def _end(self, batch: Batch, attempt: str | None, version: int | None, status: str | None = None) -> None:
        facts = {"batch": batch.number, "attempt": attempt, "version": version, "status": status}
        done = {"event": Event.DONE.value, **facts}
        self.files.append([done], self.clock())

    def _broken(self, error: Exception, batch: Batch) -> tuple[str, str] | None:
        """The file that made the append fail, with the reason."""
        named = named_failure(error)
        if not isinstance(named, DataFileUnreadable):
            return None
        place = unquote(named.facts["file"]).removeprefix("file:")
        root = batch.load.location.removeprefix("file://")
        return (place[len(root) + 1 :], named.facts["problem"]) if place.startswith(f"{root}/") else None


def _is_aborted(batch: Batch, reports: Sequence[FileReport]) -> bool:
    """Whether an error of a file has ended the statement."""
    aborts = batch.load.options.on_error.mode is ErrorMode.ABORT_STATEMENT
    return aborts and any(report.status is FileStatus.LOAD_FAILED for report in reports)


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
