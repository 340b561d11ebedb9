"""Stages and pipes, as their users defined them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tidemark.pipes.model.formats import FileFormat

__all__ = ["NamedFormat", "Pipe", "PipeState", "Stage"]


class PipeState(StrEnum):
    """SYSTEM$PIPE_STATUS: executionState. Only those that can occur here."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED_STAGE_DROPPED = "STOPPED_STAGE_DROPPED"
    STOPPED_FILE_FORMAT_DROPPED = "STOPPED_FILE_FORMAT_DROPPED"
    STOPPED_MISSING_PIPE = "STOPPED_MISSING_PIPE"
    STOPPED_MISSING_TABLE = "STOPPED_MISSING_TABLE"
    STALLED_COMPILATION_ERROR = "STALLED_COMPILATION_ERROR"
    STALLED_INITIALIZATION_ERROR = "STALLED_INITIALIZATION_ERROR"
    STALLED_EXECUTION_ERROR = "STALLED_EXECUTION_ERROR"
    STALLED_INTERNAL_ERROR = "STALLED_INTERNAL_ERROR"


@dataclass(frozen=True)
class NamedFormat:
    """A FILE FORMAT. Names are found in any case, unless they are in quotes."""

    uid: str
    name: str
    format: FileFormat
    comment: str | None
    created_at: datetime


@dataclass(frozen=True)
class Stage:
    """A STAGE on a directory: `location` is its canonical URI. `format`: its own; `format_name`: a named one."""

    uid: str
    name: str
    location: str
    format: FileFormat | None
    format_name: str | None
    comment: str | None
    created_at: datetime


@dataclass(frozen=True)
class Pipe:
    """A pipe: the text of its COPY statement, and its state. `queue`: path of its table of files.

    `auto_ingest`: whether runs look for new files. `notification_channel`: the address of a queue of notifications, if
    it has one. `paused_at`: since then it takes no files. `problem`, `stalled`: of the last run that failed.
    `problem_at`, `problem_run`: the time and the key of that run. `pulled_at`: the last time when a run took
    notifications of its channel. `ended_at`: since then the pipe is dropped.
    """

    uid: str
    name: str
    copy_statement: str
    queue: str
    auto_ingest: bool
    notification_channel: str | None
    comment: str | None
    created_at: datetime
    paused_at: datetime | None = None
    stalled: PipeState | None = None
    problem: str | None = None
    last_run_at: datetime | None = None
    problem_at: datetime | None = None
    problem_run: str | None = None
    pulled_at: datetime | None = None
    ended_at: datetime | None = None
