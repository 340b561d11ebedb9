"""The state of a pipe, and how its runs and its pauses change it."""

from __future__ import annotations

from datetime import datetime

from tidemark.errors import (
    CopyRefused,
    FileFormatNotFound,
    InvalidArgument,
    JobCancelled,
    NotYetSupported,
    PipeNotFound,
    PipePaused,
    SourceError,
    SqlCompilationError,
    StageNotFound,
    StoreError,
    TableNotFound,
    TargetError,
    TidemarkError,
)
from tidemark.pipes.model.events import KEPT
from tidemark.pipes.model.pipes import Pipe, PipeState
from tidemark.pipes.model.status import NeededObjects

__all__ = ["STALE_AFTER", "is_stale", "kept_state", "stalled_by", "state_of"]

STALE_AFTER = KEPT  # then the queue has forgotten files

_NO_FAILURES = (JobCancelled, PipePaused, StoreError)  # a user stopped it, or the store is away
_STATES: tuple[tuple[PipeState, tuple[type[TidemarkError], ...]], ...] = (
    (PipeState.STOPPED_STAGE_DROPPED, (StageNotFound,)),
    (PipeState.STOPPED_FILE_FORMAT_DROPPED, (FileFormatNotFound,)),
    (PipeState.STOPPED_MISSING_TABLE, (TableNotFound,)),
    (PipeState.STOPPED_MISSING_PIPE, (PipeNotFound,)),
    (PipeState.STALLED_COMPILATION_ERROR, (SqlCompilationError, InvalidArgument, NotYetSupported, CopyRefused)),
    (PipeState.STALLED_INITIALIZATION_ERROR, (SourceError, TargetError)),
    (PipeState.STALLED_EXECUTION_ERROR, (TidemarkError,)),
)


def state_of(pipe: Pipe, needed: NeededObjects) -> PipeState:
    """The state of a pipe by its row and the objects that it needs."""
    if pipe.ended_at is not None:
        return PipeState.STOPPED_MISSING_PIPE
    if pipe.paused_at is not None:
        return PipeState.PAUSED
    if not needed.stage:
        return PipeState.STOPPED_STAGE_DROPPED
    if not needed.file_format:
        return PipeState.STOPPED_FILE_FORMAT_DROPPED
    if not needed.table:
        return PipeState.STOPPED_MISSING_TABLE
    return pipe.stalled or PipeState.RUNNING


def kept_state(pipe: Pipe) -> PipeState:
    """The state by the pipe's row alone."""
    return state_of(pipe, NeededObjects())


def is_stale(pipe: Pipe, now: datetime) -> bool:
    """Whether the pipe has been paused for longer than its queue remembers files."""
    return pipe.paused_at is not None and now - pipe.paused_at > STALE_AFTER


def stalled_by(error: BaseException) -> PipeState | None:
    """The state in which a run leaves the pipe that failed with `error`; None if nothing is wrong with the pipe."""
    if isinstance(error, _NO_FAILURES):
        return None
    found = (state for state, kinds in _STATES if isinstance(error, kinds))
    return next(found, PipeState.STALLED_INTERNAL_ERROR)
