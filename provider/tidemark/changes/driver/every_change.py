"""Every change of a window, commit by commit, in pages of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from tidemark.changes.driver.feed_files import why_unusable
from tidemark.changes.driver.plan import require_one_readable_table
from tidemark.changes.driver.planned_files import planned_files
from tidemark.changes.planning.sets.few import has_few_rows
from tidemark.changes.planning.sets.folds import Fold, brings_rows_back, fold_commit
from tidemark.changes.planning.sets.plan import Candidate, ChangePlan, PlannedFile, choose_netting
from tidemark.errors import InvalidArgument
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import StreamMode
from tidemark.model.table_log import Commit, Metadata, TableState

__all__ = ["ROWS_PER_PAGE", "plan_pages", "state_at"]

ROWS_PER_PAGE = 1_000_000  # rows read, not rows changed
FILES_PER_PAGE = 10_000  # a driver plans them easily
COMMITS_PER_PAGE = 1_000


def plan_pages(
    log: DeltaLog,
    start: int,
    end: int,
    *,
    rows_per_page: int = ROWS_PER_PAGE,
    reader: str = "CHANGES",
    schema_of: int | None = None,
) -> Iterator[ChangePlan]:
    """Plans of pages for every change in (start, end], in order, for `read_changes`. Pages have no gap and no overlap:
    the first begins at `start`, the last ends at `end`. At least one page exists, which may be empty.

    A page has whole commits, at least one, and ends before a commit that would make it read more than `rows_per_page`
    rows. So neither planning nor a page grows with the window, though a page may be as large as a commit. All pages
    show the columns of the version `schema_of` (default: `end`; R100), so that they can be united.

    `start` -1 begins with the table itself, version 0 included.

    A change belongs to its commit, and update images are paired within it. A commit that only moves rows (OPTIMIZE) has
    no changes, nor has an update that changes no value (R54). Raises errors of `plan_changes`, and InvalidArgument.
    """
    if rows_per_page < 1:
        raise InvalidArgument(argument="rows_per_page", value=rows_per_page, problem="it must be at least 1")
    before = state_at(log, start)
    shown = log.state(end if schema_of is None else schema_of).metadata
    page = _Page(log, before, shown, start, rows_per_page)
    require_one_readable_table(log, before, (), reader)
    for commit in log.commits(start, end, listed=True) if end > start else ():
        require_one_readable_table(log, page.state, (commit,), reader)
        files = page.files_of(commit)
        if page.is_too_much(files):
            yield page.close()
        page.take(commit, files)
    yield page.close()


def state_at(log: DeltaLog, version: int) -> TableState:
    """The table at a version; at -1 as at version 0, but without rows. Raises errors of `log.state`."""
    if version >= 0:
        return log.state(version)
    return replace(log.state(0), version=version, row_id_high_water_mark=None)


class _Page:
    """The commits since the last page was closed, and the table's state after them."""

    def __init__(self, log: DeltaLog, before: TableState, shown: Metadata, start: int, limit: int) -> None:
        self.log, self.state, self.shown, self.limit = log, before, shown, limit
        self._begin(start)

    def _begin(self, start: int) -> None:
        self.start = self.end = start
        self.rows = 0
        self.files: list[PlannedFile] = []
        self.times: dict[int, datetime] = {}
        self.brings_back = False

    def files_of(self, commit: Commit) -> tuple[PlannedFile, ...]:
        """The files that a commit would add to the page."""
        fold = self._fold(commit)
        start = commit.version - 1
        return tuple(planned_files(self.log, fold, self.shown, start, commit.version, version=commit.version))

    def _fold(self, commit: Commit) -> Fold:
        fold = fold_commit(commit, self.state.metadata, self.state.row_id_high_water_mark, feed=True)
        if fold.feed and why_unusable(self.log, fold.feed, self.shown):
            return fold_commit(commit, self.state.metadata, self.state.row_id_high_water_mark, feed=False)
        return fold

    def is_too_much(self, files: tuple[PlannedFile, ...]) -> bool:
        """Whether the page must be closed before these files."""
        if not self.files:
            return False
        rows = self.rows + sum(file.rows for file in files)
        too_many_files = len(self.files) + len(files) > FILES_PER_PAGE
        return rows > self.limit or too_many_files or len(self.times) >= COMMITS_PER_PAGE

    def take(self, commit: Commit, files: tuple[PlannedFile, ...]) -> None:
        """Adds a commit and its files."""
        self.end = commit.version
        self.rows += sum(file.rows for file in files)
        self.files += files
        self.brings_back |= brings_rows_back((commit,), self.state.row_id_high_water_mark)
        if files:
            self.times[commit.version] = commit.timestamp
        mark = commit.row_id_high_water_mark
        self.state = replace(
            self.state,
            version=commit.version,
            metadata=commit.metadata or self.state.metadata,
            protocol=commit.protocol or self.state.protocol,
            row_id_high_water_mark=self.state.row_id_high_water_mark if mark is None else mark,
        )

    def close(self) -> ChangePlan:
        """The plan of the page. The next page begins after it."""
        files = tuple(self.files)
        plan = ChangePlan(
            table_uri=self.log.uri,
            table_id=self.state.table_id,
            start=self.start,
            end=self.end,
            mode=StreamMode.EVERY_CHANGE,
            candidate=Candidate.EACH,
            netting=choose_netting(Candidate.EACH, files, brings_back=self.brings_back),
            metadata=self.shown,
            files=files,
            times=self.times,
        )
        self._begin(self.end)
        return replace(plan, in_driver=has_few_rows(plan))
