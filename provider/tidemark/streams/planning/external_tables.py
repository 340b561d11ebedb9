"""The changes that a refresh of an external table has to note: the difference of two lists of files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidemark.errors import InvalidArgument
from tidemark.model.external_tables import DataFile, FileFormat

__all__ = ["FileChanges", "compare_files", "file_format_of"]


@dataclass(frozen=True)
class FileChanges:
    """Files that are new, that have other content than before, and that are gone; each in the order of its path."""

    added: tuple[DataFile, ...]
    overwritten: tuple[DataFile, ...]
    removed: tuple[DataFile, ...]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to note."""
        return not (self.added or self.overwritten or self.removed)


def compare_files(known: Iterable[DataFile], current: Iterable[DataFile]) -> FileChanges:
    """The difference between `known`, the files that the last refresh saw, and `current`, the files that are stored
    now.
    """
    before = {file.path: file for file in known}
    now = {file.path: file for file in current}
    return FileChanges(
        added=tuple(now[path] for path in sorted(now.keys() - before.keys())),
        overwritten=tuple(now[path] for path in sorted(now.keys() & before.keys()) if now[path] != before[path]),
        removed=tuple(before[path] for path in sorted(before.keys() - now.keys())),
    )


def file_format_of(value: str) -> FileFormat:
    """The format by its name, in any case. Raises InvalidArgument."""
    try:
        return FileFormat(value.lower())
    except ValueError as error:
        problem = f"one of {', '.join(FileFormat)}"
        raise InvalidArgument(argument="file_format", value=value, problem=problem) from error
