"""Locks on files. They end with the processes that hold them, however those end."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["is_held", "lock_now", "locked"]

_SECONDS_BETWEEN_TRIES = 0.05


def lock_now(file: Path) -> int | None:
    """The descriptor of the locked file, which is created if it does not exist; None if another process holds it.

    A child process that inherits the descriptor holds the lock, too.
    """
    number = os.open(file, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        return None
    except BaseException:
        os.close(number)
        raise
    return number


def is_held(file: Path) -> bool:
    """Whether a process holds the file. A file that does not exist is not held."""
    try:
        number = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(number, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(number)
    return False


@contextmanager
def locked(file: Path, stop_if_due: Callable[[], None]) -> Iterator[None]:
    """Waits for the file, and holds it inside. `stop_if_due` raises to end the wait."""
    while (number := lock_now(file)) is None:
        stop_if_due()
        time.sleep(_SECONDS_BETWEEN_TRIES)
    try:
        yield
    finally:
        os.close(number)
