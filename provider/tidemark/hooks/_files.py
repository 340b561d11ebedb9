"""Files and directories that only their owner may read and write."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tidemark.errors import DirectoryNotPrivate

__all__ = ["private_directory", "secret_file", "write_private"]


def write_private(file: Path, text: str) -> None:
    """Writes a file with mode 0600 from the first byte on, in place of an older one."""
    file.unlink(missing_ok=True)
    with open(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as target:
        target.write(text)


def private_directory(directory: Path) -> Path:
    """The directory with mode 0700, created if it does not exist. Idempotent: a second call changes nothing.

    Raises DirectoryNotPrivate if it is a link, belongs to another user, or cannot be made private.
    """
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
        _require_ours(directory, directory.lstat())
        number = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _make_private(directory, number)
        finally:
            os.close(number)
    except OSError as error:
        raise DirectoryNotPrivate(directory=str(directory), problem=f"cannot be made private: {error}") from error
    return directory


def _make_private(directory: Path, number: int) -> None:
    """Checks and changes the opened directory, even if another one has replaced `directory` since."""
    _require_ours(directory, os.fstat(number))
    if os.fstat(number).st_mode & 0o077:
        os.fchmod(number, 0o700)
        mode = stat.S_IMODE(os.fstat(number).st_mode)
        if mode & 0o022:  # some file systems ignore a mode
            problem = f"stays writable for others (mode {mode:04o}) on its file system"
            raise DirectoryNotPrivate(directory=str(directory), problem=problem)


def _require_ours(directory: Path, status: os.stat_result) -> None:
    if not stat.S_ISDIR(status.st_mode):
        raise DirectoryNotPrivate(directory=str(directory), problem="is a link or a file")
    if status.st_uid != os.geteuid():
        problem = f"belongs to the user {status.st_uid}, and this worker is the user {os.geteuid()}"
        raise DirectoryNotPrivate(directory=str(directory), problem=problem)


@contextmanager
def secret_file(path: Path, text: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """A path at which a child process reads the text, any number of times, and descriptors that it must inherit.

    On Linux the file is in memory, so a killed process leaves nothing. Elsewhere it is `path`, with mode 0600, and is
    deleted after the context.
    """
    number = _in_memory(path.name)
    if number is not None:
        with open(number, "w", encoding="utf-8") as target:
            target.write(text)
            target.flush()
            yield f"/proc/self/fd/{number}", (number,)
        return
    write_private(path, text)
    try:
        yield str(path), ()
    finally:
        path.unlink(missing_ok=True)


def _in_memory(name: str) -> int | None:
    """The descriptor of a file in memory; None if the system has no such files, or does not allow them."""
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):
            number = os.memfd_create(name)
            os.fchmod(number, 0o600)
            return number
    return None
