"""Which tables there are below a lake's root, by their directories alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tidemark.errors import StorageRefused, StorageUnreachable
from tidemark.lake.file_names import HIDDEN
from tidemark.lake.segments import LOG_DIRECTORY
from tidemark.lake.storage import Storage
from tidemark.sql.identifiers import spelled

__all__ = ["table_names"]


def table_names(lake_root: str, options: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The names of all Delta tables of the lake, sorted: `schema.table`, or `table` where one lies at the root itself.

    A part that is no plain word stands in backticks, so that each name leads to its table again. A root that is not
    there holds none; a directory below it that may not be read is passed over. Raises StorageRefused,
    StorageUnreachable.
    """
    storage = Storage(lake_root, options)
    return tuple(sorted(_listed(storage)))


def _listed(storage: Storage) -> Iterator[str]:
    for outer in _names(storage, ""):
        if _is_table(storage, outer):
            yield spelled(outer)
            continue
        for inner in _directories(storage, outer):
            if _is_table(storage, f"{outer}/{inner}"):
                yield f"{spelled(outer)}.{spelled(inner)}"


def _is_table(storage: Storage, directory: str) -> bool:
    with _passing_over(storage):
        return storage.exists(f"{directory}/{LOG_DIRECTORY}")
    return False


def _directories(storage: Storage, directory: str) -> list[str]:
    with _passing_over(storage):
        return _names(storage, directory)
    return []


def _names(storage: Storage, directory: str) -> list[str]:
    """What may be a directory there; a file, or what is gone meanwhile, has none below it."""
    try:
        return [name for name in storage.names(directory) if not name.startswith(HIDDEN)]
    except (FileNotFoundError, NotADirectoryError):
        return []


@contextmanager
def _passing_over(storage: Storage) -> Iterator[None]:
    """One directory that may not be read, or on a local disk cannot be, hides no other."""
    try:
        yield
    except StorageRefused:
        return
    except StorageUnreachable:
        if not storage.is_local:
            raise
