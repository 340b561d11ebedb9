"""How far the events of an event log were written as files. A table beside the log has the range of each target."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from tidemark.lake.delta_log import DeltaLog
from tidemark.model.codec import to_plain
from tidemark.model.foreign_json import foreign_value

__all__ = ["FileRange", "files_app_id", "newest_range"]

_MARK = "tidemark_event_files"


@dataclass(frozen=True)
class FileRange:
    """The newest range [start, end) of positions of a target, as a row of the table and in its commit's `userMetadata`.

    `done`: all of its files exist; else an attempt is writing them, or died. `events`: in its files. A range keeps
    `format`, `file_bytes` and `interval_seconds`, so that every attempt writes the same files.
    """

    target: str
    number: int
    start: str
    end: str
    done: bool
    format: str
    file_bytes: int
    interval_seconds: float
    events: int

    def to_text(self) -> str:
        """The text for a commit's `userMetadata`."""
        return json.dumps({_MARK: to_plain(self)}, sort_keys=True, separators=(",", ":"))


def files_app_id(store_id: str, replication_uid: str, target: str) -> str:
    """The Delta application whose version is the number of the target's newest commit."""
    digest = hashlib.sha1(target.encode(), usedforsecurity=False).hexdigest()
    return f"tidemark/{store_id}/{replication_uid}/files/{digest}"


def newest_range(log: DeltaLog, target: str) -> FileRange | None:
    """The newest range of the target in the commits that still exist; None if they have none."""
    for version in range(log.head(), log.earliest() - 1, -1):
        for commit in log.commits(version - 1, version):
            found = foreign_value(FileRange, commit.user_metadata, _MARK)
            if found is not None and found.target == target:
                return found
    return None
