"""Jobs of loads: a COPY statement, a run of a pipe, and files for a pipe's queue."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tidemark.model.jobs import Job
from tidemark.pipes.model.copying import Load, Validation
from tidemark.pipes.model.files import FileReport, FileSource

__all__ = [
    "COPY_FILES",
    "QUEUE_FILES",
    "RUN_PIPE",
    "CopiedFiles",
    "CopyFiles",
    "QueueFiles",
    "QueuedFiles",
    "RowError",
    "RunPipe",
    "RunPipeReport",
]


@dataclass(frozen=True)
class CopyFiles:
    """`key`: of the run. A second run with the same key continues the plan of the first one, or returns its report.
    `validation`: nothing is written.
    """

    load: Load
    key: str
    validation: Validation | None = None


@dataclass(frozen=True)
class RowError:
    """A row that a validation found. `line`, `character`, `row_number`: from 1."""

    file: str
    error: str
    line: int | None
    character: int | None
    column: str | None
    row: str | None
    row_number: int | None = None


@dataclass(frozen=True)
class CopiedFiles:
    """The files of a COPY statement by name. `version`: the target's version with the rows; None: none were loaded.
    `errors`, `rows`: of a validation; rows as JSON.
    """

    files: tuple[FileReport, ...]
    version: int | None = None
    errors: tuple[RowError, ...] = ()
    rows: tuple[str, ...] = ()


COPY_FILES = Job("copy_files", CopyFiles, CopiedFiles, "pipes.driver.job_copy_files:copy_files")


@dataclass(frozen=True)
class RunPipe:
    """`queue`: path of the pipe's table of files. `list_files`: look for new files first. `full_listing_seconds`: how
    old the last complete listing may be. `max_files`, `max_bytes`: of one batch; `batches`: of this run. `force`: files
    that were loaded before are loaded again, once by each `run`: its retries have the same text.

    `has_channel`: notifications announce new files, so files are listed only if the last complete listing is too old.
    `notified`: the names that they announce, behind location and prefix; they come into the queue first.
    """

    pipe: str
    uid: str
    queue: str
    load: Load
    list_files: bool = True
    prefix: str = ""
    modified_after: datetime | None = None
    force: bool = False
    full_listing_seconds: float = 3600
    max_files: int = 10_000
    max_bytes: int = 16 << 30
    batches: int = 10
    run: str = ""
    has_channel: bool = False
    notified: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunPipeReport:
    """Counts over the batches of this run. `failed`: the first files that were skipped or have errors, at most 20.
    `pending`: files still in the queue. `version`: the target's version with the last rows. `left_out`: files that no
    run has met before, and that are older than the history, so that they were not loaded. `first_left_out`: the oldest.
    """

    batches: int
    files: int
    files_loaded: int
    files_with_errors: int
    rows_loaded: int
    bytes_loaded: int
    errors_seen: int
    pending: int
    version: int | None
    failed: tuple[FileReport, ...] = ()
    left_out: int = 0
    first_left_out: str | None = None


RUN_PIPE = Job("run_pipe", RunPipe, RunPipeReport, "pipes.driver.job_run_pipe:run_pipe")


@dataclass(frozen=True)
class QueueFiles:
    """Files for a pipe's queue: those of `files`, or those that a listing finds. `load`: of the pipe. `source`: the way
    in which they come.
    """

    pipe: str
    uid: str
    queue: str
    load: Load
    source: FileSource
    files: tuple[str, ...] = ()
    prefix: str = ""
    modified_after: datetime | None = None


@dataclass(frozen=True)
class QueuedFiles:
    """`queued`: files that are new in the queue; `known`: those that waited or were loaded before. `at`: the time
    of the events of the new files; None: there are none.
    """

    queued: int
    known: int
    at: datetime | None = None


QUEUE_FILES = Job("queue_files", QueueFiles, QueuedFiles, "pipes.driver.job_queue_files:queue_files")
