"""The tables below a lake's root, found by their directories alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from tidemark.errors import StorageRefused, StorageUnreachable
from tidemark.lake.file_names import HIDDEN
from tidemark.lake.segments import LOG_DIRECTORY
from tidemark.lake.storage import Storage
from tidemark.model.own_tables import HISTORY_SUFFIX, SEARCH_SUFFIX
from tidemark.sql.identifiers import spelled

__all__ = ["table_names"]


def table_names(lake_root: str, options: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The names of all Delta tables of the lake, sorted: `schema.table`, or `table` for one directly below the root.
    Histories of channels, and search tables beside their tables, are left out.

    A part that is no plain word has backticks, so as an argument each name leads to its table. A missing root has no
    tables, and a directory that may not be read is skipped. Raises StorageRefused, StorageUnreachable.
    """
    storage = Storage(lake_root, options)
    return tuple(sorted(_listed(storage)))


def _listed(storage: Storage) -> Iterator[str]:
    outers = _names(storage, "")
    for outer in outers:
        if _is_search(storage, outer, outers):
            continue
        if _is_table(storage, outer):
            yield spelled(outer)
            continue
        inners = _directories(storage, outer)
        within = {f"{outer}/{inner}" for inner in inners}
        for inner in inners:
            place = f"{outer}/{inner}"
            if _is_table(storage, place) and not _is_search(storage, place, within):
                yield f"{spelled(outer)}.{spelled(inner)}"


def _is_table(storage: Storage, directory: str) -> bool:
    with _passing_over(storage):
        return storage.exists(f"{directory}/{LOG_DIRECTORY}")
    return False


def _is_search(storage: Storage, place: str, beside: Collection[str]) -> bool:
    """Whether it is the search table of a table `beside` it, by its name."""
    table = place.removesuffix(SEARCH_SUFFIX)
    return table != place and table in beside and _is_table(storage, table)


def _directories(storage: Storage, directory: str) -> list[str]:
    with _passing_over(storage):
        return _names(storage, directory)
    return []


def _names(storage: Storage, directory: str) -> list[str]:
    """The names below a place that may be directories. A file, or a place that is gone by now, has none."""
    try:
        names = storage.names(directory)
        return [name for name in names if not name.startswith(HIDDEN) and not name.endswith(HISTORY_SUFFIX)]
    except (FileNotFoundError, NotADirectoryError):
        return []


@contextmanager
def _passing_over(storage: Storage) -> Iterator[None]:
    """Skips a directory that may not be read, or cannot be read on a local disk, so that it hides no other."""
    try:
        yield
    except StorageRefused:
        return
    except StorageUnreachable:
        if not storage.is_local:
            raise
