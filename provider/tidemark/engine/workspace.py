"""Where log-only tables live: one new directory for each, under the lake root and never under a table."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import fsspec

from tidemark.lake.failures import storage_errors_named

__all__ = ["Workspace"]

_ROOM = "log_only"


def _random_name() -> str:
    return uuid.uuid4().hex


class Workspace:
    """New directories for one owner; `close` removes them all. As a context manager it closes itself.

    Delta keeps logs in memory by path, so no directory is ever used twice, not even by a second attempt of the same
    owner. `root_uri` is usually `<lake root>/_tidemark`; `options` are fsspec's for it. Raises StorageRefused and
    StorageUnreachable where the storage does not do what is asked.
    """

    def __init__(
        self,
        root_uri: str,
        owner_id: str,
        *,
        options: Mapping[str, Any] | None = None,
        new_name: Callable[[], str] = _random_name,
    ) -> None:
        self.root = f"{root_uri.rstrip('/')}/{_ROOM}"
        self.owner_id = owner_id
        self._options = dict(options or {})
        self._new_name = new_name
        self._made: list[str] = []

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def new_directory(self) -> str:
        """A URI that nobody has had before; the directory comes to be with the first file in it."""
        owner = "".join(letter if letter.isalnum() else "-" for letter in self.owner_id)
        uri = f"{self.root}/{owner[:40]}-{self._new_name()}"
        self._made.append(uri)
        return uri

    def write(self, uri: str, content: bytes) -> None:
        """Write a file, its directories included. A second run overwrites it."""
        with storage_errors_named(uri):
            filesystem, path = self._at(uri)
            if _is_local(uri):  # object stores have no directories, and asking for one asks for rights on the bucket
                filesystem.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
            filesystem.pipe_file(path, content)

    def close(self) -> None:
        """Remove what this workspace has made. A second run finds nothing to do."""
        while self._made:
            with storage_errors_named(self._made[-1]), suppress(FileNotFoundError):
                filesystem, path = self._at(self._made[-1])
                filesystem.rm(path, recursive=True)
            self._made.pop()

    def sweep(self, older_than: datetime) -> int:
        """Remove directories of any owner whose log was written before `older_than` (left by a process that died).

        Returns how many. A second run finds nothing to do.
        """
        with storage_errors_named(self.root):
            return self._sweep(older_than)

    def _sweep(self, older_than: datetime) -> int:
        filesystem, root = self._at(self.root)
        if not filesystem.exists(root):
            return 0
        orphans = [
            entry
            for entry in filesystem.ls(root, detail=False)
            if (written := self._written_at(filesystem, entry)) is not None and written < older_than
        ]
        for orphan in orphans:
            with suppress(FileNotFoundError):  # another job sweeps too
                filesystem.rm(orphan, recursive=True)
        return len(orphans)

    def _written_at(self, filesystem: Any, directory: str) -> datetime | None:
        try:
            times = [filesystem.modified(file) for file in filesystem.find(directory)]
        except FileNotFoundError:  # its owner has closed meanwhile
            return None
        return min((_utc(time) for time in times), default=None)

    def _at(self, uri: str) -> tuple[Any, str]:
        uncached = {} if _is_local(uri) else {"use_listings_cache": False}
        filesystem, path = fsspec.core.url_to_fs(uri, **{**uncached, **self._options})
        return filesystem, path


def _is_local(uri: str) -> bool:
    return uri.startswith(("file:", "/"))


def _utc(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)
