"""Data files of one table, written below its directory."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidemark.errors import StorageUnreachable
from tidemark.lake.failures import storage_errors_named
from tidemark.lake.storage import file_system_of, listed_time

__all__ = ["LakeFiles"]

_NOT_THERE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


class LakeFiles:
    """Files below the table at a canonical URI. `options`: those of fsspec's file system."""

    def __init__(self, uri: str, options: Mapping[str, Any]) -> None:
        self._uri = uri
        self._local = Path(uri.removeprefix("file://")) if uri.startswith("file://") else None
        with storage_errors_named(uri):
            self._filesystem: Any = None if self._local else file_system_of(uri, options)

    def write(self, name: str, data: bytes | memoryview) -> int | None:
        """Write a new file. Its modification time in milliseconds since 1970, if the storage tells it.

        Raises StorageRefused or StorageUnreachable. A half-written local file is removed.
        """
        uri = f"{self._uri}/{name}"
        try:
            with storage_errors_named(uri):
                if self._local is None:
                    self._filesystem.pipe_file(uri, bytes(data))
                    return None
                return self._write_local(self._local / name, data)
        except _NOT_THERE as error:
            raise StorageUnreachable(place=uri, problem=str(error)) from error

    def read(self, name: str) -> bytes:
        """The bytes of a file; none if it does not exist. Raises StorageRefused or StorageUnreachable."""
        with storage_errors_named(f"{self._uri}/{name}"), contextlib.suppress(*_NOT_THERE):
            if self._local is not None:
                return (self._local / name).read_bytes()
            return bytes(self._filesystem.cat_file(f"{self._uri}/{name}"))
        return b""

    def mark(self, name: str) -> tuple[object, ...] | None:
        """A value that another file of that name does not have; None if there is no file."""
        with storage_errors_named(f"{self._uri}/{name}"):
            try:
                if self._local is not None:
                    found = (self._local / name).stat()
                    return found.st_ino, found.st_size, found.st_mtime_ns
                info = self._filesystem.info(f"{self._uri}/{name}", refresh=True)
            except _NOT_THERE:
                return None
            return info.get("ETag"), info.get("etag"), info.get("size"), listed_time(info)

    def _write_local(self, path: Path, data: bytes | memoryview) -> int:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with path.open("xb") as file:
                file.write(data)
                return os.fstat(file.fileno()).st_mtime_ns // 1_000_000
        except OSError:
            with contextlib.suppress(OSError):
                path.unlink()
            raise
