"""The files of tables at their newest versions, kept in a process and brought up to date from the log."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import Any

from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.live_files import live_files
from tidemark.lake.segments import commit_name
from tidemark.model.table_log import AddFile, TableState
from tidemark.search.planning.bounds import statistics_of

__all__ = ["Snapshot", "Snapshots"]

_MOST_TABLES = 32
_MOST_COMMITS = 100  # that are read one by one; behind a longer way all files are read again


@dataclass(frozen=True)
class Snapshot:
    """A table at a version. `files`: path → file, in the order in which they were added. `stamp`: the time of the
    version's commit file, which differs for another table at the same path.
    """

    log: DeltaLog
    state: TableState
    files: Mapping[str, AddFile]
    stamp: datetime | None
    _statistics: dict[str, Mapping[str, Any]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def version(self) -> int:
        """The version."""
        return self.state.version

    def statistics(self, file: AddFile) -> Mapping[str, Any]:
        """The statistics of a file, parsed once."""
        found = self._statistics.get(file.path)
        if found is None:
            found = self._statistics[file.path] = statistics_of(file)
        return found


class Snapshots:
    """The newest snapshots of the last tables. A table is looked at each time, and only its new commits are read."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Snapshot] = OrderedDict()
        self._lock = Lock()

    def newest(self, log: DeltaLog) -> Snapshot:
        """The table now. Raises what the log raises."""
        kept = self._kept.get(log.uri)
        head = log.head()
        if kept is not None and (kept.stamp is None or kept.stamp != _stamp(log, kept.version)):
            kept = None
        if kept is not None and kept.version == head:
            return kept
        found = _followed(kept, log, head) if kept is not None else None
        found = found or snapshot_at(log, head)
        with self._lock:
            self._kept[log.uri] = found
            self._kept.move_to_end(log.uri)
            while len(self._kept) > _MOST_TABLES:
                self._kept.popitem(last=False)
        return found


def snapshot_at(log: DeltaLog, version: int) -> Snapshot:
    """The table at a version. Raises what the log raises."""
    files = {file.path: file for file in live_files(log, version)}
    return Snapshot(log, log.state(version), files, _stamp(log, version))


def _stamp(log: DeltaLog, version: int) -> datetime | None:
    """The time of a commit file; None if it is gone, after which nothing is kept."""
    try:
        return log.storage.modified_at(commit_name(version))
    except FileNotFoundError:
        return None


def _followed(kept: Snapshot, log: DeltaLog, head: int) -> Snapshot | None:
    """The snapshot with the commits since; None if all has to be read again."""
    if not kept.version < head <= kept.version + _MOST_COMMITS:
        return None
    files = dict(kept.files)
    for commit in log.commits(kept.version, head):
        if commit.metadata is not None and commit.metadata.table_id != kept.state.table_id:
            return None
        for removed in commit.removes:
            files.pop(removed.path, None)
        files.update((added.path, added) for added in commit.adds)
    statistics = {path: said for path, said in kept._statistics.items() if files.get(path) == kept.files.get(path)}
    return Snapshot(log, log.state(head), files, _stamp(log, head), statistics)
