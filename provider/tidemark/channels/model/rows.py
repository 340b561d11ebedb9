"""Rows that a writer hands over, and the answers to it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["BadRow", "InsertAnswer", "OnError", "RowError", "RowErrorKind"]


class OnError(StrEnum):
    """The effect of a row that does not fit the table (seed 001, ON_ERROR)."""

    ABORT = "abort"  # raises; no row of the batch is taken, the token stays
    CONTINUE = "continue"  # takes the other rows; the token moves past the bad ones
    SKIP_BATCH = "skip_batch"  # takes no row of the batch and reports all errors; the token stays


class RowErrorKind(StrEnum):
    """The classes of row errors, in the order of checks: a row has the first that applies."""

    UNREADABLE = "unreadable"
    EXTRA_COLUMN = "extra_column"
    MISSING_COLUMN = "missing_column"
    NULL_VALUE = "null_value"
    WRONG_TYPE = "wrong_type"
    INVALID_VALUE = "invalid_value"
    OUT_OF_RANGE = "out_of_range"
    TOO_LARGE = "too_large"


@dataclass(frozen=True)
class RowError:
    """The first problem of a row. `row_index`: its place in the batch, from 0. `column`: the name of the column. If
    several columns have that problem, their names with commas between them. Empty if the whole row is unreadable.
    """

    row_index: int
    column: str
    kind: RowErrorKind
    message: str

    def __str__(self) -> str:
        return f"column {self.column}: {self.message}" if self.column else self.message


@dataclass(frozen=True)
class BadRow:
    """A row for the quarantine. `place`: in its source. `text`: the row in JSON, or as it came. `end_offset_token`:
    that of its batch.
    """

    place: str
    error: RowError
    text: str
    end_offset_token: str | None


@dataclass(frozen=True)
class InsertAnswer:
    """The result of one insert. `rows`: rows that the buffer took. `errors`: one for each bad row, by row index.
    `not_shown`: further bad rows, since the ingest service answers the first errors alone.
    """

    rows: int
    errors: tuple[RowError, ...] = ()
    not_shown: int = 0

    @property
    def error_count(self) -> int:
        """The number of bad rows."""
        return len(self.errors) + self.not_shown

    @property
    def has_errors(self) -> bool:
        """Whether a row was refused."""
        return self.error_count > 0
