"""The end of a log directory, found without a listing of the whole.

A table that gets a commit a second has millions of files in its log, and a listing of them takes seconds. Delta's
`_last_checkpoint` names a checkpoint near the head (protocol, "Last Checkpoint File"). The files behind it are few. A
store with S3's interface lists them alone. On a local disk they are asked for by name. Other storages are listed whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import Any

from tidemark.errors import NotAFile
from tidemark.lake.fields import said_text
from tidemark.lake.file_listing import FileListing
from tidemark.lake.segments import (
    LOG_DIRECTORY,
    CheckpointFiles,
    LogFiles,
    bare,
    checkpoint_name,
    checksum_name,
    commit_name,
    list_log,
)
from tidemark.lake.storage import Storage, StoredFile
from tidemark.model.foreign_json import foreign_object

__all__ = ["LogTail", "log_tail", "tail_around", "times_from"]

_LAST_CHECKPOINT = f"{LOG_DIRECTORY}/_last_checkpoint"
_MOST_BEHIND = 1000  # commits behind a checkpoint that are asked for by name
_MOST_BEFORE = 100  # versions before one in which a checkpoint is looked for
_SAME_TIME = 1000  # commits that may have one time
_GAP = 100  # versions behind the head that must not exist; commits behind a larger gap have checkpoints
_MOST_ASKED = 10_000


@dataclass(frozen=True)
class LogTail:
    """The files of a log from a whole checkpoint on: all commits behind it, up to the head.

    `stored`: each file as a listing shows it, by its name in the log directory.
    """

    files: LogFiles
    stored: dict[str, StoredFile]

    @property
    def start(self) -> int:
        """The version of the first checkpoint. States before it are not in this tail."""
        return self.files.checkpoints[0].version


def log_tail(storage: Storage) -> LogTail | None:
    """The files from the checkpoint that `_last_checkpoint` names on.

    None: only a listing of the whole log tells. There is no such checkpoint, it is far behind the head, or commits
    are missing behind it.
    """
    checkpoint = _last_checkpoint(storage)
    if checkpoint is None:
        return None
    if _lists_by_name(storage):
        return _listed(storage, checkpoint.version)
    return _asked_for(storage, checkpoint, most=_MOST_BEHIND)


def tail_around(storage: Storage, version: int) -> LogTail | None:
    """The files from a checkpoint shortly at or before `version` on. None: only a listing of the whole log tells.

    On local disks only classic checkpoints of one part are found.
    """
    if _lists_by_name(storage):
        found = _listed(storage, max(version - _MOST_BEFORE, 0))
        return None if found is None or found.start > version else found
    for at in range(version, max(version - _MOST_BEFORE, -1), -1):
        name = checkpoint_name(at)
        if storage.exists(f"{LOG_DIRECTORY}/{name}"):
            return _asked_for(storage, CheckpointFiles(at, (name,)), most=_MOST_ASKED)
    return None


def times_from(storage: Storage, version: int) -> dict[str, datetime] | None:
    """Name → modification time of the log's files from a version on, and of some before it.

    Stores of objects have times in whole seconds, so the order of commits shifts their times. Those of the commits
    before it count, too. None if the storage only lists directories.
    """
    if not _lists_by_name(storage):
        return None
    return {file.name: file.modified_at for file in _behind(storage, max(version - _SAME_TIME, 0))}


def _last_checkpoint(storage: Storage) -> CheckpointFiles | None:
    """The checkpoint that the file names, whether it exists or not."""
    try:
        said = foreign_object(storage.read_bytes(_LAST_CHECKPOINT))
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, NotAFile):
        return None
    named = list_log(_names(said)).checkpoints
    return named[0] if named else None


def _names(said: Mapping[str, Any]) -> tuple[str, ...]:
    """The files of the checkpoint; none if the text about them is garbled."""
    version, parts, v2 = said.get("version"), said.get("parts"), said.get("v2Checkpoint")
    if isinstance(v2, dict):
        path = said_text(v2, "path")
        return () if path is None else (bare(path),)
    if type(version) is not int or version < 0:
        return ()
    if parts is None:
        return (checkpoint_name(version),)
    if type(parts) is not int or not 0 < parts <= _MOST_BEHIND:
        return ()
    return tuple(checkpoint_name(version, part, parts) for part in range(1, parts + 1))


def _lists_by_name(storage: Storage) -> bool:
    return storage.uri.startswith("s3://")


def _behind(storage: Storage, version: int) -> Iterator[StoredFile]:
    """Files of the log from a version on, in the order of their names."""
    return iter(FileListing(f"{storage.uri}/{LOG_DIRECTORY}", storage.options, start_after=f"{version:020d}"))


def _listed(storage: Storage, version: int) -> LogTail | None:
    stored = {file.name: file for file in _behind(storage, version)}
    files = list_log(stored)
    return LogTail(files, stored) if files.checkpoints else None


def _asked_for(storage: Storage, checkpoint: CheckpointFiles, *, most: int) -> LogTail | None:
    """The tail of a local log. None without its checkpoint, with a gap, or with more than `most` commits."""
    stored: dict[str, StoredFile] = {}

    def has(name: str) -> bool:
        found = storage.stored_file(f"{LOG_DIRECTORY}/{name}")
        if found is not None:
            stored[name] = found._replace(name=name)
        return found is not None

    if not all(has(name) for name in checkpoint.names):
        return None
    has(bare(commit_name(checkpoint.version)))
    has(bare(checksum_name(checkpoint.version)))
    for version in count(checkpoint.version + 1):
        if not has(bare(commit_name(version))):
            break
        has(checkpoint_name(version))
        has(bare(checksum_name(version)))
        if version - checkpoint.version > most:
            return None
    later = [f"{LOG_DIRECTORY}/{checkpoint_name(at)}" for at in range(version, version + _GAP)]
    later += [commit_name(at) for at in range(version + 1, version + 1 + _GAP)]
    if any(storage.exists(name) for name in later):
        return None
    return LogTail(list_log(stored), stored)
