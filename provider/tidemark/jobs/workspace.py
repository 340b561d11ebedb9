"""Directories of log-only tables (logs and deletion vectors): a new one for each, below the lake root and never below a
table.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from tidemark.lake.failures import storage_errors_named
from tidemark.lake.orphans import LOG_ONLY, open_fresh

__all__ = ["Workspace"]


def _random_name() -> str:
    return uuid.uuid4().hex


class Workspace:
    """New directories of one owner. `close` removes them all; as a context manager it closes itself.

    Delta caches logs by path, so no directory is used twice, not even by a second attempt of the same owner.
    `root_uri` is usually `<lake root>/_tidemark`; `options` are fsspec's for it. Raises StorageRefused and
    StorageUnreachable if the storage fails.
    """

    def __init__(
        self,
        root_uri: str,
        owner_id: str,
        *,
        options: Mapping[str, Any] | None = None,
        new_name: Callable[[], str] = _random_name,
    ) -> None:
        self.root = f"{root_uri.rstrip('/')}/{LOG_ONLY}"
        self.owner_id = owner_id
        self._options = dict(options or {})
        self._new_name = new_name
        self._made: list[str] = []

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def new_directory(self) -> str:
        """A URI that was never used before. The first file in it creates the directory."""
        owner = "".join(letter if letter.isalnum() else "-" for letter in self.owner_id)
        uri = f"{self.root}/{owner[:40]}-{self._new_name()}"
        self._made.append(uri)
        return uri

    def adopt(self, uri: str) -> None:
        """A directory that somebody else has created; `close` removes it, too."""
        self._made.append(uri)

    def write(self, uri: str, content: bytes) -> None:
        """Writes a file and its directories. Idempotent: a second run overwrites it."""
        with storage_errors_named(uri):
            filesystem, path = self._at(uri)
            if _is_local(uri):  # object stores have no directories, and a request for one needs rights on the bucket
                filesystem.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
            filesystem.pipe_file(path, content)

    def close(self) -> None:
        """Removes the directories of this workspace. Idempotent: a second run finds nothing to do."""
        while self._made:
            with storage_errors_named(self._made[-1]), suppress(FileNotFoundError):
                filesystem, path = self._at(self._made[-1])
                filesystem.rm(path, recursive=True)
            self._made.pop()

    def _at(self, uri: str) -> tuple[Any, str]:
        return open_fresh(uri, self._options)


def _is_local(uri: str) -> bool:
    return uri.startswith(("file:", "/"))
