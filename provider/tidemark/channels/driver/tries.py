"""Commits that meet those of others are tried again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tidemark.errors import CommitConflict

__all__ = ["in_tries"]

_Result = TypeVar("_Result")


def in_tries(attempt: Callable[[], _Result], tries: int) -> _Result:
    """The result of the first attempt that meets no commit of another. Raises its other errors, and CommitConflict."""
    for _ in range(tries):
        try:
            return attempt()
        except CommitConflict as conflict:
            problem = conflict
    raise problem
