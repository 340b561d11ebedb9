"""Texts of files, unpacked, and the first record of a CSV file, which names its columns (PARSE_HEADER)."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any

from tidemark.lake.storage import Storage
from tidemark.pipes.driver.packed import unpacked
from tidemark.pipes.driver.unreadable import opened
from tidemark.pipes.planning.readers import CsvRead

__all__ = ["headers_of", "quoting", "unpacked_text"]

_AT_ONCE = 8
_ENDS = re.compile(r"\r\n|\n|\r")  # of lines, as Spark has them: other blanks may be in a name
_MOST_BYTES = 1 << 20
_MOST_TEXT = 64 << 20  # of a file that is read for a line number


def headers_of(
    location: str, options: Mapping[str, str] | None, files: Sequence[str], read: CsvRead
) -> tuple[tuple[str, ...], ...]:
    """The names in the first record of each file, in the order of the files; none of an empty file. A blank first
    line has an empty name.

    Eight files are read at once. Raises DataFileUnreadable for the first file that is broken, StorageUnreachable.
    """
    storage = Storage(location, options)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return tuple(pool.map(lambda file: _header(storage, file, read), files))


def unpacked_text(location: str, options: Mapping[str, str] | None, file: str, encoding: str) -> str | None:
    """The text of a file, unpacked; None for a large one. Raises DataFileUnreadable, StorageUnreachable."""
    with opened(Storage(location, options), file) as content:
        found = _beginning(content, file, _MOST_TEXT)
    return None if len(found) == _MOST_TEXT else found.decode(encoding, errors="replace")


def _header(storage: Storage, file: str, read: CsvRead) -> tuple[str, ...]:
    with opened(storage, file) as content:
        text = _beginning(content, file, _MOST_BYTES).decode(read.encoding, errors="replace").lstrip("\ufeff")
        if not text.strip():
            return ()
        return tuple(name.strip() for name in _fields(text, read)) or ("",)


def _fields(text: str, read: CsvRead) -> Sequence[str]:
    """The fields of the first record. With fields in quotes it may have several lines."""
    line = text.split(read.line_separator, 1)[0] if read.line_separator else _ENDS.split(text, maxsplit=1)[0]
    if read.separator is None:
        return (line,)
    if len(read.separator) > 1:
        return line.split(read.separator)
    record = text if read.multi_line and not read.line_separator else line
    return next(csv.reader(io.StringIO(record, newline=""), delimiter=read.separator, **quoting(read)), ())


def quoting(read: CsvRead) -> dict[str, Any]:
    """The quotes of a format for Python's reader of CSV."""
    if not read.quote:
        return {"quoting": csv.QUOTE_NONE}
    if read.escape in (None, read.quote):
        return {"quotechar": read.quote}
    return {"quotechar": read.quote, "escapechar": read.escape, "doublequote": False}


def _beginning(content: IO[bytes], file: str, most: int) -> bytes:
    found: bytes = unpacked(content, file).read(most)
    return found
