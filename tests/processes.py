"""Processes that may end while they are looked at."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import psutil

__all__ = ["command_of", "kill_all"]


def command_of(process: psutil.Process) -> list[str]:
    """Its command line; empty for a process that has ended, also for one whose end nobody has taken note of."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def kill_all(processes: Iterable[psutil.Process]) -> None:
    """SIGKILL to those that are still there: the death of one may have ended another."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
