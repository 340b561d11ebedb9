"""Words for files that are older than a history, which may have forgotten that it loaded them."""

from __future__ import annotations

from datetime import timedelta

__all__ = ["late_note", "late_problem", "tells_late"]

_WAY = "list_files='all' and their prefix in a run, or insert_files with their names, loads them"
_LATE = "left out, since they are older than the history of the pipe"


def late_note(count: int, kept: timedelta, way: str = _WAY) -> str:
    """The words of a log about such files. `kept`: how far the history reaches. `way`: what loads them."""
    return f"{count} files are older than the history of {kept.days} days, and may have been loaded before; {way}"


def late_problem(count: int, first: str | None) -> str:
    """The problem of a pipe whose files came with such a time, and the way out."""
    return f"{count} files were {_LATE}. The first one is {first}; {_WAY}."


def tells_late(problem: str | None) -> bool:
    """Whether the problem of a pipe is one of such files, which no history has."""
    return problem is not None and _LATE in problem
