"""What a transaction has pinned, for whoever looks at its log: versions, files and about how many rows."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from tidemark.errors import LakeError, SourceError
from tidemark.model.streams import StreamMode, StreamWindow, WindowKind
from tidemark.model.table_log import Commit
from tidemark.model.transactions import Transaction
from tidemark.planning.backlog import change_records
from tidemark.transactions.sources import Tables

__all__ = ["PinnedWindow", "facts_of_pinned", "tell_pinned"]

MOST_VERSIONS = 200
"""Of a window whose commits are read for it: about a second on an object store."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PinnedWindow:
    """A window, and how much lies in it: None where that would cost more than it tells, or the log does not say."""

    window: StreamWindow
    versions: int
    files: int | None = None
    rows: int | None = None

    def __str__(self) -> str:
        window = self.window
        if window.kind is WindowKind.INITIAL_ROWS:
            return f"Stream {window.stream_name}: pinned with the rows at version {window.start}"
        said = f"Stream {window.stream_name}: pinned versions ({window.start}, {window.end}], {self.versions} commits"
        return said if self.files is None else f"{said}, {self.files} files, about {self.rows} change records"


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


def _look(window: StreamWindow, tables: Tables) -> PinnedWindow:
    versions = window.end - window.start
    countable = window.kind is WindowKind.CHANGES and window.mode is not StreamMode.INSERT_ONLY
    if not countable or versions > MOST_VERSIONS:
        return PinnedWindow(window, versions)
    try:
        commits = [
            commit for base in window.bases for commit in tables(base.table).commits(base.start, base.end, listed=False)
        ]
    except (SourceError, LakeError, OSError) as error:  # the job says it, if it meets it, too
        log.debug("The window of %s was not counted: %s", window.stream_name, error)
        return PinnedWindow(window, versions)
    return PinnedWindow(window, versions, sum(map(_files, commits)), sum(map(change_records, commits)))


def _files(commit: Commit) -> int:
    """Data files that hold what changed."""
    added = {file.path for file in commit.adds if file.data_change}
    return len(added | {file.path for file in commit.removes if file.data_change})
