"""Files of loads, and the report of each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

__all__ = ["LOADED", "TOLD", "FileReport", "FileSource", "FileStatus", "place_in_words"]


class FileStatus(StrEnum):
    """The state of a file in a load, by the words of the source system."""

    LOADED = "LOADED"
    PARTIALLY_LOADED = "PARTIALLY_LOADED"
    LOAD_FAILED = "LOAD_FAILED"
    LOAD_SKIPPED = "LOAD_SKIPPED"  # ON_ERROR, or another file ended the statement
    LOAD_IN_PROGRESS = "LOAD_IN_PROGRESS"

    @property
    def has_rows(self) -> bool:
        """Whether rows of the file are in the table."""
        return self in (FileStatus.LOADED, FileStatus.PARTIALLY_LOADED)


LOADED = tuple(status.value for status in FileStatus if status.has_rows)


class FileSource(StrEnum):
    """The way in which a file came into a queue."""

    LISTING = "listing"
    REFRESH = "refresh"
    INSERT_FILES = "insert_files"
    NOTIFICATION = "notification"


TOLD = (FileSource.INSERT_FILES, FileSource.NOTIFICATION)
"""The sources of files that somebody named. They are loaded once; other sources may ask for a file again."""


@dataclass(frozen=True)
class FileReport:
    """One file of a load. `file`: its name below the location. `error_limit`: the number of errors from which on it is
    skipped; None: there is none. `first_error_line` and `first_error_character` count from 1. `system_error`: why it
    could not be read at all, or that it changed while its rows were loaded. It also says that no column is the table's.
    """

    file: str
    status: FileStatus
    size: int
    rows_parsed: int
    rows_loaded: int
    errors_seen: int
    error_limit: int | None = None
    first_error: str | None = None
    first_error_line: int | None = None
    first_error_character: int | None = None
    first_error_column: str | None = None
    system_error: str | None = None
    received_at: datetime | None = None
    loaded_at: datetime | None = None

    @property
    def place(self) -> str:
        """The place of the first error in words."""
        return place_in_words(self.file, self.first_error_line, self.first_error_character, self.first_error_column)


def place_in_words(file: str, line: int | None, character: int | None, column: str | None) -> str:
    """The place of an error: file f.csv, line 3, character 5, column id. Unknown parts are left out."""
    known = {"line": line, "character": character, "column": column}
    parts = [f"{name} {value}" for name, value in known.items() if value is not None]
    return ", ".join([f"file {file}", *parts])
