"""Which tables there are below a lake's root, by their directories alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidemark.lake.segments import LOG_DIRECTORY
from tidemark.lake.storage import Storage
from tidemark.planning.identifiers import spelled

__all__ = ["table_names"]

_HIDDEN = ("_", ".")  # `_tidemark` among them


def table_names(lake_root: str, options: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The names of all Delta tables of the lake, sorted: `schema.table`, or `table` where one lies at the root itself.

    A part that is no plain word stands in backticks, so that each name leads to its table again. A root that is not
    there holds none. Raises StorageRefused, StorageUnreachable.
    """
    storage = Storage(lake_root, options)
    return tuple(sorted(_found(storage)))


def _found(storage: Storage) -> Iterator[str]:
    for outer in _directories(storage, ""):
        if storage.exists(f"{outer}/{LOG_DIRECTORY}"):
            yield spelled(outer)
            continue
        for inner in _directories(storage, outer):
            if storage.exists(f"{outer}/{inner}/{LOG_DIRECTORY}"):
                yield f"{spelled(outer)}.{spelled(inner)}"


def _directories(storage: Storage, place: str) -> list[str]:
    """What may be a directory there; a file, or what is gone meanwhile, has none below it."""
    try:
        return [name for name in storage.names(place) if not name.startswith(_HIDDEN)]
    except (FileNotFoundError, NotADirectoryError):
        return []
