"""Facts of CSV files that Spark's reader of records does not tell, read from the files themselves."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import IO, TypeVar

from tidemark.lake.storage import Storage
from tidemark.pipes.driver.headers import quoting
from tidemark.pipes.driver.packed import is_readable, unpacked
from tidemark.pipes.driver.unreadable import opened
from tidemark.pipes.driver.whole_reads import WholeReads
from tidemark.pipes.planning.readers import CsvRead

__all__ = ["ends_in_quotes", "files_in_utf8", "header_records", "records_in", "unclosed_files"]

_AT_ONCE = 8
_BEGINNING = 1 << 16

Answer = TypeVar("Answer")


def files_in_utf8(
    location: str, options: Mapping[str, str] | None, files: Sequence[str], stop_if_due: Callable[[], None]
) -> list[str]:
    """Those of the files whose bytes are UTF-8, or are packed as Python cannot unpack them.

    Raises DataFileUnreadable, StorageUnreachable, and what `stop_if_due` raises.
    """
    reads = WholeReads(stop_if_due)
    found = _each(location, options, files, lambda content, _: _is_utf8(reads.blocks(content)))
    return [file for file in files if found.get(file, True)]


def unclosed_files(
    location: str,
    options: Mapping[str, str] | None,
    files: Sequence[str],
    read: CsvRead,
    stop_if_due: Callable[[], None],
) -> list[str]:
    """Those of the files that end within quotes. Each is read once, in parts. Raises DataFileUnreadable,
    StorageUnreachable, and what `stop_if_due` raises.
    """
    reads = WholeReads(stop_if_due)

    def is_open(content: IO[bytes], _: str) -> bool:
        return ends_in_quotes(_parts(reads.blocks(content), read), read)

    found = _each(location, options, files, is_open)
    return [file for file, has_open_quote in found.items() if has_open_quote]


def ends_in_quotes(parts: Iterable[str], read: CsvRead) -> bool:
    """Whether a text, given in parts, ends within quotes as Spark's reader of records has them.

    A quote opens only at the beginning of a field, and closes unless it is escaped. The text behind it,
    up to the next separator, is of the same field.
    """
    assert read.quote is not None
    ends = read.line_separator or "\n\r"
    bounds = [*ends, *([read.separator] if read.separator else [])]
    quote, escape = re.escape(read.quote), re.escape(read.escape or read.quote)
    trimmed = "".join(map(chr, range(1, 33))).translate(dict.fromkeys(map(ord, "".join(bounds))))
    blanks = f"[{re.escape(trimmed)}]*" if read.trim else ""
    opening = re.compile(f"(?:{'|'.join(map(re.escape, bounds))}){blanks}{quote}")
    closing = re.compile(f"{escape}(?:{quote}|{escape})|({quote})(?=.)", re.DOTALL)
    left, within = ends[0], False
    for part in parts:
        text, at = left + part, 0
        while found := (closing if within else opening).search(text, at):
            at, within = found.end(), not within or found.lastindex is None
        left = text[max(at, len(text) - 1) if within else _last_bound(text, at, bounds) :]
    return within and left != read.quote


def _last_bound(text: str, at: int, bounds: Sequence[str]) -> int:
    """The place of the last bound of a field, behind which a quote may come. Without one, that of a part of a bound."""
    found = max(text.rfind(bound, at) for bound in bounds)
    return found if found >= 0 else max(at, len(text) - max(map(len, bounds)))


def header_records(
    location: str, options: Mapping[str, str] | None, files: Sequence[str], read: CsvRead
) -> dict[str, int]:
    """File → the number of records in the lines of its header, of those in which the two differ.

    Raises DataFileUnreadable, StorageUnreachable.
    """

    def counted(content: IO[bytes], _: str) -> int:
        return records_in(content.read(_BEGINNING).decode(read.encoding, errors="replace"), read)

    found = _each(location, options, files, counted)
    return {file: number for file, number in found.items() if number != read.skip_header}


def records_in(text: str, read: CsvRead) -> int:
    """The number of records that begin in the lines of a header. A blank line is no record."""
    if read.line_separator is not None:
        return read.skip_header
    count, before = 0, 0
    separator = (read.separator or "\x00")[0]
    records = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=separator, **quoting(read))
    with suppress(csv.Error):
        for record in records:
            if before >= read.skip_header:
                break
            count, before = count + bool(record), records.line_num
    return count


def _each(
    location: str,
    options: Mapping[str, str] | None,
    files: Sequence[str],
    ask: Callable[[IO[bytes], str], Answer],
) -> dict[str, Answer]:
    """The answers of the files that Python can read, each unpacked. Eight are read at once."""
    readable = list(filter(is_readable, files))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = pool.map(partial(_asked, Storage(location, options), ask), readable)
        return dict(zip(readable, answers, strict=True))


def _asked(storage: Storage, ask: Callable[[IO[bytes], str], Answer], file: str) -> Answer:
    with opened(storage, file) as content:
        return ask(unpacked(content, file), file)


def _is_utf8(blocks: Iterable[bytes]) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for block in blocks:
            decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _parts(blocks: Iterable[bytes], read: CsvRead) -> Iterator[str]:
    """The text without a byte order mark."""
    decoder = codecs.getincrementaldecoder("utf-8-sig" if read.encoding == "UTF-8" else read.encoding)("replace")
    for block in blocks:
        yield decoder.decode(block)
