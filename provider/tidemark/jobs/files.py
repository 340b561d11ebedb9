"""The files between a worker and a driver: spec, result, cancel marker. Local paths, file: URIs or any fsspec URI."""

from __future__ import annotations

import fcntl
import os
import uuid
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

import fsspec

from tidemark.lake.failures import storage_errors_named
from tidemark.model.codec import from_json, to_json
from tidemark.model.jobs import JobResult, JobSpec

__all__ = ["exists", "has_lost_its_worker", "in_a_store", "read_spec", "read_text", "write_result", "write_text"]

_WORKER = "worker"  # its worker locks it beside the spec, and no other process

_WITH_HALF_FILES = ("hdfs", "viewfs", "webhdfs", "swebhdfs", "sftp", "ssh", "smb")  # readers see what is written so far


def read_spec(uri: str) -> JobSpec:
    """The spec in the file. Raises ValueError if the text is not a JobSpec of this release."""
    return from_json(JobSpec, read_text(uri))


def read_text(uri: str) -> str:
    """The text of a file. Raises OSError if it does not exist."""
    with fsspec.open(_path_of(uri), "rt", encoding="utf-8") as file:
        return str(file.read())


def write_result(uri: str, result: JobResult) -> None:
    """Writes the result as a whole, so that no reader sees half of it. Idempotent: a second run replaces it."""
    write_text(uri, to_json(result))


def write_text(uri: str, text: str) -> None:
    """Writes a text as a whole, as `write_result` does. Idempotent: a second run replaces it."""
    location = _path_of(uri)
    if urlsplit(location).scheme in _WITH_HALF_FILES:
        _write_and_rename(location, text)
        return
    if "://" in location:
        with fsspec.open(location, "wt", encoding="utf-8") as file:  # object stores show whole objects only
            file.write(text)
        return
    path = Path(location)
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f"{path.name}.{os.getpid()}.half")
    with half.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    half.replace(path)


def _write_and_rename(location: str, text: str) -> None:
    filesystem, path = fsspec.url_to_fs(location)
    half = f"{path}.{uuid.uuid4().hex}.half"
    filesystem.makedirs(path.rpartition("/")[0], exist_ok=True)
    with filesystem.open(half, "wb") as file:
        file.write(text.encode())
    with suppress(FileNotFoundError):
        filesystem.rm_file(path)  # no file is renamed to a name that another has
    filesystem.mv(half, path)


def exists(uri: str) -> bool:
    """Whether the file exists, such as the cancel marker. Raises StorageRefused and StorageUnreachable."""
    location = _path_of(uri)
    with storage_errors_named(uri):
        if "://" not in location:
            return Path(location).exists()
        found: bool = fsspec.url_to_fs(location)[0].exists(location)
        return found


def has_lost_its_worker(spec_path: str) -> bool:
    """Whether the worker of the job is dead: nobody holds the lock of its file. False without such a file, and without
    locks.
    """
    try:
        number = os.open(Path(spec_path).with_name(_WORKER), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(number, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(number)
    return True


def in_a_store(uri: str) -> bool:
    """Whether the file is in a storage that is asked over the network."""
    return "://" in _path_of(uri)


def _path_of(uri: str) -> str:
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else uri
