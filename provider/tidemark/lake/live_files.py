"""The data files of a table at a version, with their statistics, from its log alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidemark.lake import actions
from tidemark.lake.checkpoint_adds import AddReader, checkpoint_adds
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.table_log import AddFile

__all__ = ["live_files"]


def live_files(log: DeltaLog, version: int) -> tuple[AddFile, ...]:
    """The files at the version. A checkpoint that has statistics as columns only gives files without them.

    Raises VersionNotFound, LogIncomplete, CorruptLog.
    """
    checkpoint = log.checkpoint_at_or_before(version)
    found: dict[str, AddFile] = {}
    if checkpoint is not None:
        found.update((file.path, file) for file in checkpoint_adds(log, checkpoint, _READER))
    for commit in log.commits(-1 if checkpoint is None else checkpoint.version, version):
        for removed in commit.removes:
            found.pop(removed.path, None)
        found.update((added.path, added) for added in commit.adds)
    return tuple(found.values())


def _of_batch(adds: Any) -> Iterator[AddFile]:
    return map(actions.add_file, adds.to_pylist())


_FIELDS = frozenset(
    {
        "path",
        "size",
        "partitionValues",
        "modificationTime",
        "dataChange",
        "stats",
        "deletionVector",
        "baseRowId",
        "defaultRowCommitVersion",
    }
)
_READER = AddReader(_FIELDS, actions.add_file, _of_batch, at_once=10_000)
