"""Where the logs of change streams lie, and how one is removed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urlsplit

import fsspec

from tidemark.lake.failures import storage_errors_named
from tidemark.lake.storage import canonical_uri

__all__ = ["logs_root", "remove_log"]

_ROOM = "change_streams"


def logs_root(workspace: str) -> str:
    """The directory of the logs; `workspace` is `<lake root>/_tidemark`."""
    return f"{canonical_uri(workspace)}/{_ROOM}"


def remove_log(log_path: str, options: Mapping[str, str] | None = None) -> None:
    """Delete the log of a change stream that was dropped. One that is not there is fine, so a second run is, too.

    Raises ValueError for a place where no log of ours can lie, StorageRefused, StorageUnreachable.
    """
    uri = canonical_uri(log_path)
    if f"/{_ROOM}/" not in uri:
        raise ValueError(f"{uri} does not lie in a directory {_ROOM}")
    with storage_errors_named(uri), suppress(FileNotFoundError):
        filesystem = fsspec.filesystem(urlsplit(uri).scheme, **dict(options or {}))
        filesystem.rm(uri.removeprefix("file://"), recursive=True)
