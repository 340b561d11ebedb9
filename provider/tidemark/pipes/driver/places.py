"""Line and character of a file's first error."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress

from tidemark.pipes.driver.headers import unpacked_text
from tidemark.pipes.driver.readings import Reading
from tidemark.pipes.driver.staging import FirstError
from tidemark.pipes.model.copying import Load
from tidemark.pipes.planning.readers import CsvRead, text_reader

__all__ = ["place_of", "places_of"]


def place_of(first: FirstError, reading: Reading, file: str) -> tuple[int | None, int | None]:
    """Line and character, both from 1. None for files whose rows have no lines."""
    return places_of([first], reading.load, reading.options, file)[0]


def places_of(
    errors: Sequence[FirstError], load: Load, options: Mapping[str, str] | None, file: str
) -> list[tuple[int | None, int | None]]:
    """Line and character of bad rows of a file, in the same order.

    The lines of records with fields in quotes are looked for in the file, which is read once.
    """
    if not load.format.type.is_text:
        return [(None, None)] * len(errors)
    read = text_reader(load.format)
    if not isinstance(read, CsvRead):
        return [(error.row_number, 1) for error in errors]
    numbers = {error.row_number for error in errors}
    lines = _lines(numbers, load.location, options, file, read) if read.multi_line else {}
    return [
        (lines.get(error.row_number, error.row_number), _character(error.raw or "", error.position, read))
        for error in errors
    ]


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


def _lines(
    numbers: Set[int], location: str, options: Mapping[str, str] | None, file: str, read: CsvRead
) -> dict[int, int]:
    """The lines in which these records begin; those that cannot be found are left out."""
    found: dict[int, int] = {}
    text = unpacked_text(location, options, file, read.encoding)
    if text is None or read.separator is None or len(read.separator) != 1:
        return found
    records = csv.reader(io.StringIO(text, newline=""), delimiter=read.separator, quotechar=read.quote or '"')
    number, before, last = 1, 0, max(numbers, default=0)
    with suppress(csv.Error):
        for record in records:
            if not record:
                continue
            if number in numbers:
                found[number] = before + 1
            if number == last:
                break
            number, before = number + 1, records.line_num
    return found
