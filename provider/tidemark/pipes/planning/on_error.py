"""ON_ERROR: the fate of each file of a load, from the counts of its errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidemark.pipes.model.copying import ErrorMode, OnError
from tidemark.pipes.model.files import FileReport, FileStatus

__all__ = ["FileCounts", "aborting_file", "decide", "error_limit"]


@dataclass(frozen=True)
class FileCounts:
    """A file after its rows were parsed. `errors`: rows with an error. `system_error`: why it could not be read."""

    file: str
    size: int
    rows_parsed: int
    rows_good: int
    errors: int = 0
    first_error: str | None = None
    first_error_line: int | None = None
    first_error_character: int | None = None
    first_error_column: str | None = None
    system_error: str | None = None


def decide(counts: Sequence[FileCounts], on_error: OnError) -> tuple[FileReport, ...]:
    """The report of each file, in the same order.

    A file that cannot be read has failed, and none of its rows is loaded. With ABORT_STATEMENT the first file with an
    error has failed, and all others are skipped.
    """
    aborts = aborting_file(counts, on_error)
    if aborts is None:
        return tuple(_report(one, _status(one, on_error), on_error) for one in counts)
    failed, skipped = FileStatus.LOAD_FAILED, FileStatus.LOAD_SKIPPED
    return tuple(_report(one, failed if one is aborts else skipped, on_error) for one in counts)


def aborting_file(counts: Sequence[FileCounts], on_error: OnError) -> FileCounts | None:
    """The first file that ends the statement; None: it loads."""
    if on_error.mode is not ErrorMode.ABORT_STATEMENT:
        return None
    return next((one for one in counts if one.errors or one.system_error is not None), None)


def error_limit(rows_parsed: int, on_error: OnError) -> int | None:
    """The number of errors from which on a file is skipped, as the source system reports it; None: there is none.

    With a percentage it is the least number of errors above that share of the rows.
    """
    if on_error.mode is ErrorMode.CONTINUE:
        return None
    if on_error.mode is ErrorMode.SKIP_FILE and on_error.limit is not None:
        return on_error.limit
    if on_error.mode is ErrorMode.SKIP_FILE and on_error.percent is not None:
        return int(rows_parsed * on_error.percent // 100) + 1
    return 1


def _status(counts: FileCounts, on_error: OnError) -> FileStatus:
    if counts.system_error is not None:
        return FileStatus.LOAD_FAILED
    if not counts.errors:
        return FileStatus.LOADED
    limit = error_limit(counts.rows_parsed, on_error)
    if limit is not None and counts.errors >= limit:
        return FileStatus.LOAD_FAILED
    return FileStatus.PARTIALLY_LOADED if counts.rows_good else FileStatus.LOAD_FAILED


def _report(counts: FileCounts, status: FileStatus, on_error: OnError) -> FileReport:
    return FileReport(
        file=counts.file,
        status=status,
        size=counts.size,
        rows_parsed=counts.rows_parsed,
        rows_loaded=counts.rows_good if status.has_rows else 0,
        errors_seen=counts.errors,
        error_limit=error_limit(counts.rows_parsed, on_error),
        first_error=counts.first_error,
        first_error_line=counts.first_error_line,
        first_error_character=counts.first_error_character,
        first_error_column=counts.first_error_column,
        system_error=counts.system_error,
    )
