"""Line and character of a file's first error."""

from __future__ import annotations

import csv
import io
from itertools import islice

from tidemark.pipes.driver.headers import unpacked_text
from tidemark.pipes.driver.readings import Reading
from tidemark.pipes.driver.staging import FirstError
from tidemark.pipes.planning.readers import CsvRead, text_reader

__all__ = ["place_of"]


def place_of(first: FirstError, reading: Reading, file: str) -> tuple[int | None, int | None]:
    """Line and character, both from 1. None for files whose rows have no lines.

    The line of a record with fields in quotes is looked for in the file.
    """
    if not reading.load.format.type.is_text:
        return None, None
    read = text_reader(reading.load.format)
    if not isinstance(read, CsvRead):
        return first.row_number, 1
    character = _character(first.raw or "", first.position, read)
    if not read.multi_line:
        return first.row_number, character
    return _line(first.row_number, reading, file, read), character


def _character(raw: str, position: int | None, read: CsvRead) -> int:
    """The character at which a field begins."""
    if position is None or read.separator is None or not raw:
        return 1
    at, in_quotes = 0, False
    while position > 1 and at < len(raw):
        if read.quote and raw[at] == read.quote:
            in_quotes = not in_quotes
        if not in_quotes and raw.startswith(read.separator, at):
            position -= 1
            at += len(read.separator)
        else:
            at += 1
    return at + 1 if position == 1 else 1


def _line(number: int, reading: Reading, file: str, read: CsvRead) -> int:
    """The line in which the record begins."""
    text = unpacked_text(reading.load.location, reading.options, file, read.encoding)
    if text is None or read.separator is None or len(read.separator) != 1:
        return number
    lines = io.StringIO(text, newline="")
    records = csv.reader(lines, delimiter=read.separator, quotechar=read.quote or '"')
    try:
        wanted = (record for record in records if record)
        before = 0
        for _ in islice(wanted, number - 1):
            before = records.line_num
    except csv.Error:
        return number
    return before + 1
