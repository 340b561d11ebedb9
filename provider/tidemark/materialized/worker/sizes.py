"""Sizes of tables and of their changes, from their logs alone."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.changes.worker.snapshots import snapshot_bytes
from tidemark.errors import LogIncomplete
from tidemark.lake.delta_log import DeltaLog
from tidemark.materialized.planning.cost import BaseSize
from tidemark.model.external_tables import EXTERNAL_TABLE_PROPERTY
from tidemark.model.foreign_json import foreign_object
from tidemark.model.streams import BaseWindow
from tidemark.model.table_log import AddFile, Commit, RemoveFile

__all__ = ["BaseChanges", "changes_of", "commit_bytes", "lost_files", "table_bytes"]

_RESTORE = "RESTORE"


@dataclass(frozen=True)
class BaseChanges:
    """The changes of a base in a window. `restored`: the version of a RESTORE among its commits; None for none.

    `has_files`: the base is an external table, whose sizes are those of the list of its files. `lost_files`: a file was
    removed or overwritten.
    """

    size: BaseSize
    restored: int | None
    has_files: bool = False
    lost_files: bool = False


def changes_of(window: BaseWindow, log: DeltaLog) -> BaseChanges:
    """The size of a base and of its changes. Raises LogIncomplete, VersionNotFound."""
    changed, restored, lost = 0, None, False
    for commit in log.commits(window.start, window.end):
        files: tuple[AddFile | RemoveFile, ...] = (*commit.adds, *commit.removes)
        changed += sum(_bytes_of(file) for file in files if file.data_change)
        lost = lost or _removes_data(commit)
        if (commit.operation or "").upper() == _RESTORE:
            restored = commit.version
    metadata = log.state(window.end).metadata
    has_files = EXTERNAL_TABLE_PROPERTY in metadata.configuration
    fields = foreign_object(metadata.schema_json)["fields"]
    columns = tuple(str(one["name"]) for one in fields)
    size = BaseSize(changed, table_bytes(log, window.end) or changed, columns)
    return BaseChanges(size, restored, has_files, has_files and lost)


def lost_files(window: BaseWindow, log: DeltaLog) -> bool:
    """Whether a file of an external table was overwritten or removed in the window. Of another base only its state is
    read. Raises LogIncomplete, VersionNotFound.
    """
    if EXTERNAL_TABLE_PROPERTY not in log.state(window.end).metadata.configuration:
        return False
    return any(map(_removes_data, log.commits(window.start, window.end)))


def table_bytes(log: DeltaLog, version: int) -> int | None:
    """The bytes of the table's files at the version: by its checksum, else by all commits; None without both."""
    size = snapshot_bytes(log, version)
    return _by_commits(log, version) if size is None else size


def commit_bytes(log: DeltaLog, version: int) -> int:
    """The bytes of the files that a commit has added."""
    return sum(file.size for commit in log.commits(version - 1, version) for file in commit.adds)


def _by_commits(log: DeltaLog, version: int) -> int | None:
    live: dict[str, int] = {}
    try:
        for commit in log.commits(-1, version):
            for removed in commit.removes:
                live.pop(removed.path, None)
            live.update((added.path, added.size) for added in commit.adds)
    except LogIncomplete:
        return None
    return sum(live.values())


def _removes_data(commit: Commit) -> bool:
    return any(file.data_change for file in commit.removes)


def _bytes_of(file: AddFile | RemoveFile) -> int:
    """The bytes that a reader of the change opens: the file, and its deletion vector."""
    vector = file.deletion_vector
    return (file.size or 0) + (0 if vector is None else vector.size_in_bytes)
