"""The local files of jobs: whether a job still runs, and the removal of files of dead jobs.

A job's files are named by its id: a directory, and beside it `<id>.result.json` and others.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tidemark.lake.orphans import Swept, in_turn
from tidemark.warm_spark.locks import is_held
from tidemark.warm_spark.scratch import remove_scratch

__all__ = [
    "HELD",
    "SECRETS",
    "WORKER",
    "alive",
    "local_path",
    "sweep_archives",
    "sweep_hourly",
    "sweep_job_files",
    "worked_for",
]

SECRETS = "secret.properties"
KEPT_FOR = timedelta(days=7)
HELD = "alive"
WORKER = "worker"
_SWEPT = ".swept"
_SCRATCH_KEPT_FOR = timedelta(days=1)
_EVERY = timedelta(hours=1)
_READ_WITHIN = timedelta(hours=1)  # spark-submit reads its properties at its start
_LOOKED_AT = 10_000
_JOB = re.compile(r"([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})(?:\.(?:result\.json|cancel)[a-z0-9.]*)?")

log = logging.getLogger(__name__)


def local_path(uri: str) -> Path:
    """The local file of a path or canonical URI (not percent-encoded); job files are always local (client mode)."""
    return Path(uri.removeprefix("file://"))


@contextmanager
def alive(directory: Path) -> Iterator[tuple[int, ...]]:
    """Keeps the job's directory from every sweep, until this process and all that inherit the descriptors have ended.

    A file system without locks has no descriptors to inherit. There only their age keeps a job's files.
    """
    with _locked(directory / HELD) as number:
        yield (number,)


@contextmanager
def worked_for(directory: Path) -> Iterator[None]:
    """Says that the job has a worker, which sees its end, until this process has ended. No process inherits it."""
    with _locked(directory / WORKER):
        yield


@contextmanager
def _locked(file: Path) -> Iterator[int]:
    number = os.open(file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        with suppress(OSError):
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield number
    finally:
        os.close(number)


def sweep_hourly(directories: Sequence[Path], now: datetime) -> None:
    """Runs `sweep_job_files` in each of the directories, at most once an hour for the first, in steps of about 10,000
    jobs.

    Files that cannot be removed are logged; it never raises OSError. Idempotent: a second run within the hour does
    nothing.
    """
    stamp = directories[0] / _SWEPT
    try:
        if stamp.exists() and now - _modified(stamp) < _EVERY:
            return
        stamp.touch(mode=0o600)
        for directory in directories:
            swept = sweep_job_files(directory, now, now - KEPT_FOR, at_most=_LOOKED_AT)
            if swept.left:
                name, problem = next(iter(swept.left.items()))
                log.warning(
                    "Could not remove the files of %d dead jobs, such as %s: %s", len(swept.left), name, problem
                )
    except OSError as error:
        log.warning("Could not remove files of dead jobs: %s", error)


def sweep_job_files(
    directory: Path, now: datetime, older_than: datetime, *, at_most: int | None = None, dry_run: bool = False
) -> Swept:
    """Removes the files of jobs that no process holds and that were not written since `older_than`. A file of secrets
    is removed as soon as it must have been read. A dead driver's temporary files are removed after a day.
    It checks about `at_most` jobs.

    Other names are ignored, and links are not followed. Idempotent: a second run finds nothing to do.
    """
    jobs = _jobs_in(directory)
    removed: list[str] = []
    left: dict[str, str] = {}
    for job in in_turn(jobs, at_most, now):
        try:
            if _is_dead(jobs[job], directory / job, older_than):
                for file in () if dry_run else jobs[job]:
                    _remove(file)
                removed.append(str(directory / job))
            elif not dry_run:
                _forget_secrets(directory / job, now - _READ_WITHIN)
                if _is_dead(jobs[job], directory / job, now - _SCRATCH_KEPT_FOR):
                    remove_scratch(directory / job)
        except FileNotFoundError:  # its owner or another sweep has removed it
            continue
        except OSError as error:
            left[str(directory / job)] = str(error)
    return Swept(tuple(removed), left)


def sweep_archives(directory: Path, older_than: datetime, *, dry_run: bool = False) -> Swept:
    """Removes archives of the Spark side that earlier releases kept in the lake, and have not written since
    `older_than`.

    This release does not use them. Idempotent: a second run finds nothing to do.
    """
    removed: list[str] = []
    left: dict[str, str] = {}
    for file in () if directory.is_symlink() else directory.glob("tidemark-*.zip"):
        try:
            if _modified(file) < older_than:
                if not dry_run:
                    file.unlink(missing_ok=True)
                removed.append(str(file))
        except FileNotFoundError:
            continue
        except OSError as error:
            left[str(file)] = str(error)
    return Swept(tuple(sorted(removed)), left)


def _jobs_in(directory: Path) -> dict[str, list[Path]]:
    """Id → its files and directory."""
    jobs: defaultdict[str, list[Path]] = defaultdict(list)
    if not directory.is_symlink():
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(directory) as entries:
            for entry in entries:
                if found := _JOB.fullmatch(entry.name):
                    jobs[found[1]].append(directory / entry.name)
    return dict(jobs)


def _is_dead(files: Sequence[Path], directory: Path, older_than: datetime) -> bool:
    written = [_modified(file) for file in files]
    if max(written) >= older_than:
        return False
    if directory not in files:
        return True
    if directory.is_symlink() or not directory.is_dir():
        return True
    return not is_held(directory / HELD) and max(map(_modified, directory.iterdir()), default=written[0]) < older_than


def _forget_secrets(directory: Path, before: datetime) -> None:
    file = directory / SECRETS
    with suppress(FileNotFoundError, NotADirectoryError):
        if not directory.is_symlink() and _modified(file) < before:
            file.unlink()


def _remove(file: Path) -> None:
    if file.is_dir() and not file.is_symlink():
        remove_scratch(file)
        shutil.rmtree(file)
    else:
        file.unlink(missing_ok=True)


def _modified(file: Path) -> datetime:
    return datetime.fromtimestamp(file.lstat().st_mtime, UTC)
