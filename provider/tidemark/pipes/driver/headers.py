"""Texts of files, unpacked, and the first line of a CSV file, which names its columns (PARSE_HEADER)."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from tidemark.lake.failures import storage_errors_named
from tidemark.lake.storage import Storage
from tidemark.pipes.driver.packed import unpacked
from tidemark.pipes.planning.readers import CsvRead

__all__ = ["header_of", "unpacked_text"]

_MOST_BYTES = 1 << 20
_MOST_TEXT = 64 << 20  # of a file that is read for a line number


def header_of(location: str, options: Mapping[str, str] | None, file: str, read: CsvRead) -> tuple[str, ...]:
    """The names in the file's first line; none of an empty file. Raises FileNotFoundError, StorageRefused,
    StorageUnreachable.
    """
    text = (
        _beginning(Storage(location, options), file, _MOST_BYTES)
        .decode(read.encoding, errors="replace")
        .lstrip("\ufeff")
    )
    line = text.split(read.line_separator, 1)[0] if read.line_separator else (text.splitlines() or [""])[0]
    if read.separator is None:
        return (line.strip(),)
    quoting: dict[str, Any] = {"quotechar": read.quote} if read.quote else {"quoting": csv.QUOTE_NONE}
    if len(read.separator) > 1:
        return tuple(name.strip() for name in line.split(read.separator))
    found = next(csv.reader(io.StringIO(line), delimiter=read.separator, **quoting), [])
    return tuple(name.strip() for name in found)


def unpacked_text(location: str, options: Mapping[str, str] | None, file: str, encoding: str) -> str | None:
    """The text of a file, unpacked; None for a large one."""
    found = _beginning(Storage(location, options), file, _MOST_TEXT)
    return None if len(found) == _MOST_TEXT else found.decode(encoding, errors="replace")


def _beginning(storage: Storage, file: str, most: int) -> bytes:
    with storage_errors_named(f"{storage.uri}/{file}"), storage.open(file) as opened:
        found: bytes = unpacked(opened, file).read(most)
        return found
