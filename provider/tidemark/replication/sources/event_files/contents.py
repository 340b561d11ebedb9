"""The records of an event file: JSON lines, plain or compressed, or an Avro object container."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, TypeAlias, cast

from tidemark.errors import EventUnreadable
from tidemark.model.foreign_json import parsed_line
from tidemark.replication.model.replication import Column
from tidemark.replication.planning.event_file_columns import columns_of_header, require_header
from tidemark.replication.planning.event_file_records import FileRecord, avro_record, json_record
from tidemark.replication.planning.unified_values import JsonNumber
from tidemark.replication.sources.avro_containers import avro_container
from tidemark.replication.sources.event_files.inputs import invalid

__all__ = ["ENDINGS", "Columns", "header_columns", "records_of"]

ENDINGS = (".json", ".jsonl", ".json.gz", ".jsonl.gz", ".avro")
LONGEST_LINE = 1 << 28
BUFFER = 1 << 20
Columns: TypeAlias = Callable[["str | None"], "tuple[Column, ...] | None"]
"""The columns of a `schema_key`; None if nobody knows them."""


def records_of(opened: IO[bytes], place: str, columns: Columns, numeric_as: str | None = None) -> Iterator[FileRecord]:
    """Each record of the file. `place`: the file, with an ending that says its format. Columns that nobody knows are
    those of the Avro file itself. Raises EventFileInvalid, SourceDriverNotInstalled.
    """
    if place.endswith(".avro"):
        yield from _avro(opened, place, columns, numeric_as)
        return
    buffered = io.BufferedReader(cast("io.RawIOBase", opened), BUFFER)
    number, lines = 0, gzip.GzipFile(fileobj=buffered) if place.endswith(".gz") else buffered
    while True:
        try:
            line = lines.readline(LONGEST_LINE)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise invalid(place, f"cannot be unpacked behind line {number}: {error}") from error
        if not line:
            return
        number += 1
        if line.strip():
            yield _of_line(line, number, place, columns)


def _of_line(line: bytes, number: int, place: str, columns: Columns) -> FileRecord:
    cut = "" if line.endswith(b"\n") else "; the line has no end, so the file may be cut off"
    try:
        return json_record(parsed_line(line, number=JsonNumber), columns)
    except ValueError as error:
        raise invalid(place, f"has no JSON object in line {number} ({error}){cut}") from error
    except EventUnreadable as error:
        raise invalid(place, f"has no event in line {number} ({error.facts['problem']}){cut}") from error


def _avro(opened: IO[bytes], place: str, columns: Columns, numeric_as: str | None) -> Iterator[FileRecord]:
    number = 0
    try:
        header, found = avro_container(opened)
        require_header(header)
        own = header_columns(header, numeric_as)
        for document in found:
            number += 1
            yield avro_record(document, header, columns(document.get("schema_key")) or own)
    except ValueError as error:
        raise invalid(place, f"is not a file of events behind record {number}: {error}") from error
    except EventUnreadable as error:
        raise invalid(place, f"has no event in record {number} ({error.facts['problem']})") from error


def header_columns(header: Any, numeric_as: str | None) -> tuple[Column, ...]:
    """The columns of a schema of Avro. Raises ValueError."""
    try:
        return columns_of_header(header, numeric_as)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"its schema has no payload that can be read: {error!r}") from error
