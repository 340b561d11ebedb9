"""Paths of the logs of change streams and replications, their batches, and their removal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.failures import storage_errors_named
from tidemark.lake.storage import canonical_uri, file_system_of
from tidemark.model.foreign_json import foreign_object

__all__ = [
    "MARK",
    "LogEntry",
    "entries",
    "event_logs_root",
    "has_batch",
    "logs_root",
    "remove_log",
    "written_files_path",
]

MARK = "tidemark_capture"  # the key of a capture's facts in the userMetadata of its commit
_ROOM = "change_streams"
_EVENT_LOGS = "event_logs"  # of replications


@dataclass(frozen=True)
class LogEntry:
    """A commit of capture. `number`: of its batch; `mark`: its attempt and batch."""

    number: int
    mark: Mapping[str, object]

    @property
    def is_barrier(self) -> bool:
        """Whether it has no batch, and only bars its number and all lower ones."""
        return self.mark.get("barrier") is True


def entries(log: DeltaLog, uid: str) -> Iterator[LogEntry]:
    """The commits of capture that still exist in the log, newest first."""
    for version in range(log.head(), log.earliest() - 1, -1):
        for commit in log.commits(version - 1, version):
            if uid in commit.transactions:
                yield LogEntry(commit.transactions[uid] - 1, _mark_in(commit.user_metadata))


def has_batch(log: DeltaLog, uid: str, number: int) -> bool:
    """Whether the log has the batch of that number."""
    for entry in entries(log, uid):
        if entry.number <= number and not entry.is_barrier:
            return entry.number == number
    return False


def logs_root(workspace: str) -> str:
    """The directory of the logs; `workspace` is `<lake root>/_tidemark`."""
    return f"{canonical_uri(workspace)}/{_ROOM}"


def event_logs_root(workspace: str) -> str:
    """The directory of the event logs of replications; `workspace` is `<lake root>/_tidemark`."""
    return f"{canonical_uri(workspace)}/{_EVENT_LOGS}"


def written_files_path(event_log: str) -> str:
    """The path of the table that says how far the events of an event log were written as files."""
    return f"{canonical_uri(event_log)}_files"


def remove_log(log_path: str, options: Mapping[str, str] | None = None) -> None:
    """Deletes the log of a change stream or replication that was dropped.

    Idempotent: a missing log is no error. Raises ValueError for a path outside the directories of our logs,
    StorageRefused, StorageUnreachable.
    """
    uri = canonical_uri(log_path)
    if not any(f"/{room}/" in uri for room in (_ROOM, _EVENT_LOGS)):
        raise ValueError(f"{uri} is not in a directory {_ROOM} or {_EVENT_LOGS}")
    with storage_errors_named(uri), suppress(FileNotFoundError):
        filesystem = file_system_of(uri, options or {})
        filesystem.rm(uri.removeprefix("file://"), recursive=True)


def _mark_in(user_metadata: str | None) -> Mapping[str, object]:
    mark = foreign_object(user_metadata).get(MARK)
    return mark if isinstance(mark, dict) else {}
