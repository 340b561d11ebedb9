"""COPY INTO: its options, and a load whose names are resolved."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from tidemark.pipes.model.formats import FileFormat

__all__ = ["CopyOptions", "ErrorMode", "Load", "MatchBy", "OnError", "Validation", "ValidationMode"]


class ErrorMode(StrEnum):
    """The kinds of ON_ERROR."""

    ABORT_STATEMENT = "ABORT_STATEMENT"
    CONTINUE = "CONTINUE"
    SKIP_FILE = "SKIP_FILE"


@dataclass(frozen=True)
class OnError:
    """ON_ERROR. A file with errors is skipped from `limit` errors on, or with more than `percent` of its rows. Without
    both, SKIP_FILE skips it from the first error on.
    """

    mode: ErrorMode = ErrorMode.ABORT_STATEMENT
    limit: int | None = None
    percent: float | None = None


class MatchBy(StrEnum):
    """MATCH_BY_COLUMN_NAME."""

    NONE = "NONE"
    CASE_SENSITIVE = "CASE_SENSITIVE"
    CASE_INSENSITIVE = "CASE_INSENSITIVE"


class ValidationMode(StrEnum):
    """VALIDATION_MODE: nothing is written."""

    ROWS = "RETURN_ROWS"  # RETURN_n_ROWS
    ERRORS = "RETURN_ERRORS"
    ALL_ERRORS = "RETURN_ALL_ERRORS"


@dataclass(frozen=True)
class Validation:
    """`rows`: the n of RETURN_n_ROWS."""

    mode: ValidationMode
    rows: int | None = None


@dataclass(frozen=True)
class CopyOptions:
    """The options of a COPY statement. `size_limit`: bytes; the file that exceeds them is the last one."""

    on_error: OnError = OnError()
    size_limit: int | None = None
    purge: bool = False
    force: bool = False
    load_uncertain_files: bool = False
    match_by: MatchBy = MatchBy.NONE
    truncate_columns: bool = False
    return_failed_only: bool = False
    enable_schema_evolution: bool = False


@dataclass(frozen=True)
class Load:
    """A COPY statement whose names are resolved.

    `table`: the target's name; `path`: its path. `location`: canonical URI of a directory. `prefix`: the beginning of
    the names of its files that are meant. `pattern`: a regular expression of the whole name below the location.
    `files`: names below `prefix`; with them nothing is listed. `columns`: of the target, in order; empty: all of them.
    `select`: the items of the transformation, as written, without SELECT and FROM; None: the columns as they are.
    `alias`: of the files in them.
    """

    table: str
    path: str
    location: str
    prefix: str = ""
    pattern: str | None = None
    files: tuple[str, ...] = ()
    format: FileFormat = field(default_factory=FileFormat)
    columns: tuple[str, ...] = ()
    select: str | None = None
    alias: str | None = None
    options: CopyOptions = field(default_factory=CopyOptions)
