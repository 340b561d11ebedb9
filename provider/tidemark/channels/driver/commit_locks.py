"""Commits of several processes to one table on a local disk, one after the other.

A rename on a local disk is no compare-and-set: Hadoop looks whether the commit's name is free, and renames then. Two
processes that do so at once lose one of the commits. Or they leave a commit beside the checksum of the other, and Spark
refuses such a log. The JVM that writes the commit holds the lock. It outlives a killed Python, and ends with the JVM.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tidemark.errors import CommitConflict
from tidemark.lake.segments import LOG_DIRECTORY

__all__ = ["commit_lock"]

_FILE = f"{LOG_DIRECTORY}/_tidemark_commit.lock"
_SECONDS = 60.0
_PAUSE = 0.005


@contextmanager
def commit_lock(jvm: Any, uri: str, *, seconds: float = _SECONDS) -> Iterator[None]:
    """The lock of a table; nothing is locked in a store of objects.

    Raises CommitConflict if another process holds it for `seconds`, and py4j's errors.
    """
    if not uri.startswith("file://"):
        yield
        return
    place = f"{uri.removeprefix('file://')}/{_FILE}"
    file = jvm.java.io.RandomAccessFile(place, "rw")
    try:
        _take(file.getChannel(), uri, place, seconds)
        file.setLength(0)
        file.writeBytes(f"process {jvm.java.lang.ProcessHandle.current().pid()} on {socket.gethostname()}")
        yield
    finally:
        file.close()  # and with it the lock


def _take(channel: Any, uri: str, place: str, seconds: float) -> None:
    until = time.monotonic() + seconds
    while not _try(channel):
        if time.monotonic() > until:
            problem = (
                f"{_holder(place)} has committed to it for {seconds:.0f} s, by the lock {place}; end it if it hangs"
            )
            raise CommitConflict(table=uri, problem=problem)
        time.sleep(_PAUSE)


def _holder(place: str) -> str:
    """The process that took the lock last, in words."""
    try:
        said = Path(place).read_bytes()[:200].decode(errors="replace").strip()
    except OSError:
        said = ""
    return said or "another process"


def _try(channel: Any) -> bool:
    from py4j.protocol import Py4JJavaError

    try:
        return channel.tryLock() is not None
    except Py4JJavaError as error:
        if error.java_exception.getClass().getSimpleName() == "OverlappingFileLockException":
            return False  # another thread of this JVM
        raise
