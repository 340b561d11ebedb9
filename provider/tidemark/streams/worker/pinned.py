"""The versions, files and approximate rows that a transaction has pinned, for readers of its log."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from tidemark.changes.worker.snapshots import snapshot_size
from tidemark.delivery.model.transactions import DeliveredWindow, Transaction
from tidemark.errors import LakeError, SourceError
from tidemark.model.foreign_json import whole_number
from tidemark.model.streams import StreamMode, StreamWindow, WindowKind
from tidemark.model.table_log import Commit
from tidemark.streams.planning.backlog import change_records
from tidemark.streams.worker.sources import Tables

__all__ = ["PinnedWindow", "facts_of_delivered", "facts_of_pinned", "tell_pinned"]

MOST_VERSIONS = 200
"""Of a window whose commits are read for it: about a second on an object store."""

_NOTED = ("numTargetRowsInserted", "numTargetRowsUpdated")
Counted = tuple[int | None, int | None]  # files and rows

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PinnedWindow:
    """A window, and how much it holds: None if a count would cost more than it says, or the log has none."""

    window: StreamWindow
    versions: int
    files: int | None = None
    rows: int | None = None

    def __str__(self) -> str:
        window = self.window
        initial = window.kind is WindowKind.INITIAL_ROWS
        said = f"Stream {window.stream_name}: pinned " + (
            f"with the rows at version {window.start}"
            if initial
            else f"versions ({window.start}, {window.end}], {self.versions} commits"
        )
        files = "" if self.files is None else f", {self.files} files"
        rows = "" if self.rows is None else f", about {self.rows} {'rows' if initial else 'change records'}"
        return said + files + rows


def tell_pinned(transaction: Transaction, tables: Tables) -> tuple[PinnedWindow, ...]:
    """A line in the log for each window; a retry says it again. Never fails for what a log does not tell."""
    pinned = tuple(_look(window, tables) for window in transaction.windows)
    for one in pinned:
        log.info("%s", one)
    return pinned


def facts_of_pinned(pinned: PinnedWindow) -> dict[str, Any]:
    """In plain values: {stream, from, to, initial_rows, versions, files, estimated_rows}."""
    window = pinned.window
    return {
        "stream": window.stream_name,
        "from": window.start,
        "to": window.end,
        "initial_rows": window.kind is WindowKind.INITIAL_ROWS,
        "versions": pinned.versions,
        "files": pinned.files,
        "estimated_rows": pinned.rows,
    }


def facts_of_delivered(window: DeliveredWindow) -> dict[str, Any]:
    """As `facts_of_pinned`, of a window that nothing has to be read for any more: files and rows are not counted."""
    return {
        "stream": window.stream,
        "from": window.from_version,
        "to": window.to_version,
        "initial_rows": window.initial_rows,
        "versions": window.to_version - window.from_version,
        "files": None,
        "estimated_rows": None,
    }


def _look(window: StreamWindow, tables: Tables) -> PinnedWindow:
    versions = window.end - window.start
    try:
        count = _initial if window.kind is WindowKind.INITIAL_ROWS else _changes
        files, rows = count(window, tables)
    except (SourceError, LakeError, OSError) as error:  # the job says it, if it meets it, too
        log.debug("The window of %s was not counted: %s", window.stream_name, error)
        return PinnedWindow(window, versions)
    return PinnedWindow(window, versions, files, rows)


def _initial(window: StreamWindow, tables: Tables) -> Counted:
    """Files and rows at the start; of an external table its list has a row for each file, whose rows Spark knows."""
    sizes = [snapshot_size(tables(base.table), base.start, most_commits=MOST_VERSIONS) for base in window.bases]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return None, None
    rows = [size.rows for size in known if size.rows is not None]
    every = sum(rows) if len(rows) == len(known) else None
    return (every, None) if window.mode is StreamMode.INSERT_ONLY else (sum(size.files for size in known), every)


def _changes(window: StreamWindow, tables: Tables) -> Counted:
    if window.end - window.start > MOST_VERSIONS:
        return None, None
    commits = (commit for base in window.bases for commit in tables(base.table).commits(base.start, base.end))
    if window.mode is StreamMode.INSERT_ONLY:
        noted = [_noted(commit) for commit in commits]
        return None if None in noted else sum(count or 0 for count in noted), None
    counts = [(_files(commit), change_records(commit)) for commit in commits]  # one commit in memory at a time
    return sum(files for files, _ in counts), sum(rows for _, rows in counts)


def _noted(commit: Commit) -> int | None:
    """Files that a refresh of an external table found new, or other than before, by Delta's own count."""
    if not any(file.data_change for file in commit.adds):
        return 0
    counts = [whole_number(commit.operation_metrics.get(name)) for name in _NOTED]
    return None if None in counts else sum(count or 0 for count in counts)


def _files(commit: Commit) -> int:
    """Data files that hold what changed."""
    added = {file.path for file in commit.adds if file.data_change}
    return len(added | {file.path for file in commit.removes if file.data_change})
