"""Deletion vectors that are too large for the log of a log-only table, in files that its directory has, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tidemark.changes.planning.sets.plan import PlannedFile
from tidemark.lake.deletion_vectors import VectorFile
from tidemark.lake.paths import file_uri
from tidemark.lake.storage import canonical_uri
from tidemark.model.table_log import DeletionVector, UnstoredVector

if TYPE_CHECKING:
    from tidemark.jobs.workspace import Workspace

__all__ = ["with_stored_vectors"]

_BYTES_PER_FILE = 64 << 20  # the last vector may exceed it; Delta counts offsets in 31 bits


def with_stored_vectors(files: Sequence[PlannedFile], directory: str, workspace: Workspace) -> list[PlannedFile]:
    """`files` as a log can have them. Each vector without a place is written to a file in `directory`, a new one of the
    workspace. Most windows have none, and write nothing. Idempotent: a second run overwrites the same files.
    """
    room = _Room(directory, workspace)
    stored = [
        replace(file, deletion_vector=room.put(file.deletion_vector))
        if isinstance(file.deletion_vector, UnstoredVector)
        else file
        for file in files
    ]
    room.flush()
    return stored


class _Room:
    """The vector files of one directory, written one after another."""

    def __init__(self, directory: str, workspace: Workspace) -> None:
        self._directory, self._workspace = directory, workspace
        self._count = 0
        self._open = self._next()

    def put(self, vector: UnstoredVector) -> DeletionVector:
        if self._open.size >= _BYTES_PER_FILE:
            self.flush()
            self._open = self._next()
        return self._open.put(vector)

    def flush(self) -> None:
        """Writes the open file, unless it is empty."""
        if not self._open.empty:
            self._workspace.write(f"{self._directory}/{self._name}", self._open.content)

    def _next(self) -> VectorFile:
        self._name = f"deletion_vectors_{self._count}.bin"
        self._count += 1
        return VectorFile(file_uri(canonical_uri(self._directory), self._name))
