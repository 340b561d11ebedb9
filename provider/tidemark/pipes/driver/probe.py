"""Text files that cannot be read whole: all at once, where Spark would name one for each try."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from tidemark.errors import DataFileUnreadable
from tidemark.lake.storage import Storage
from tidemark.pipes.driver.packed import unpacked
from tidemark.pipes.driver.unreadable import opened

__all__ = ["broken_texts"]

_AT_ONCE = 8
_BYTES = 1 << 20


def broken_texts(location: str, options: Mapping[str, str] | None, files: Sequence[str]) -> dict[str, str]:
    """File → why it cannot be read to its end, of those that cannot. Each is read and unpacked once.

    Raises StorageUnreachable: a storage that does not answer breaks no file.
    """
    storage = Storage(location, options)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = dict(zip(files, pool.map(lambda file: _problem(storage, file), files), strict=True))
    return {file: problem for file, problem in found.items() if problem is not None}


def _problem(storage: Storage, file: str) -> str | None:
    try:
        with opened(storage, file) as packed:
            content = unpacked(packed, file)
            while content.read(_BYTES):
                pass
    except DataFileUnreadable as error:
        return str(error.facts["problem"])
    return None
