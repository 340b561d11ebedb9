"""Directories of log-only tables that dead processes left, found by age, a bounded number at a time."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import fsspec

from tidemark.errors import StorageRefused, StorageUnreachable
from tidemark.lake.failures import storage_errors_named
from tidemark.lake.storage import listed_time

__all__ = ["LOG_ONLY", "Swept", "in_turn", "open_fresh", "sweep_directories"]

LOG_ONLY = "log_only"
_SECONDS_A_TURN = 3600


@dataclass(frozen=True)
class Swept:
    """Directories that were removed, or would be. `left`: those that could not be, with the reason."""

    removed: tuple[str, ...] = ()
    left: Mapping[str, str] = field(default_factory=dict)


def in_turn(names: Iterable[str], at_most: int | None, at: datetime) -> list[str]:
    """About `at_most` of the names, others in each hour. Over the hours every name has its turn."""
    found = sorted(names)
    if at_most is None or len(found) <= at_most:
        return found
    turns = -(-len(found) // at_most)
    turn = int(at.timestamp()) // _SECONDS_A_TURN % turns
    return [name for name in found if zlib.crc32(name.encode()) % turns == turn]


def sweep_directories(
    root_uri: str,
    options: Mapping[str, Any] | None = None,
    *,
    older_than: datetime,
    at_most: int | None = None,
    dry_run: bool = False,
) -> Swept:
    """Removes each directory directly below the root in which nothing was written since `older_than`.

    It checks about `at_most` of them. A directory that cannot be removed is `left`, and does not stop the others.
    Idempotent: a second run finds nothing to do, and two runs at once share the work. Raises StorageRefused and
    StorageUnreachable if the root cannot be listed.
    """
    with storage_errors_named(root_uri):
        filesystem, root = open_fresh(root_uri, options)
        try:
            listed = {str(entry["name"]): entry for entry in filesystem.ls(root, detail=True)}
        except FileNotFoundError:
            return Swept()
    removed: list[str] = []
    left: dict[str, str] = {}
    for directory in in_turn(listed, at_most, older_than):
        try:
            with storage_errors_named(directory):
                if _removed(filesystem, listed[directory], older_than, dry_run):
                    removed.append(directory)
        except (StorageRefused, StorageUnreachable) as error:
            left[directory] = error.facts["problem"]
    return Swept(tuple(removed), left)


def _removed(filesystem: Any, entry: Mapping[str, Any], older_than: datetime, dry_run: bool) -> bool:
    directory = str(entry["name"])
    try:
        files = filesystem.find(directory, detail=True).values()
        times = [time for file in (files or [entry]) if (time := listed_time(file)) is not None]
        if not times or max(times) >= older_than:
            return False
        if not dry_run:
            filesystem.rm(directory, recursive=True)
    except FileNotFoundError:  # its owner has closed meanwhile, or another sweeps too
        return False
    return True


def open_fresh(uri: str, options: Mapping[str, Any] | None = None) -> tuple[Any, str]:
    """A file system of fsspec, and the path in it. Listings are not cached."""
    uncached = {} if uri.startswith(("file:", "/")) else {"use_listings_cache": False}
    filesystem, path = fsspec.core.url_to_fs(uri, **{**uncached, **(options or {})})
    return filesystem, path
