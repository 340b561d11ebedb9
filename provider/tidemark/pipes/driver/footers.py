"""Footers of Parquet and ORC files, and headers of Avro files: their columns, rows and faults."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from pyarrow import orc
from pyarrow import parquet as pq

from tidemark.errors import DataFileUnreadable
from tidemark.lake.storage import Storage
from tidemark.pipes.driver.file_requests import for_each_file
from tidemark.pipes.driver.unreadable import opened
from tidemark.pipes.model.formats import FileType

__all__ = ["Footer", "read_footers"]


@dataclass(frozen=True)
class Footer:
    """`columns`: equal for files with the same columns. `rows`: None if the file does not say. `problem`: None for a
    file that can be read.
    """

    file: str
    columns: str = ""
    rows: int | None = None
    problem: str | None = None


def read_footers(
    location: str, options: Mapping[str, str] | None, kind: FileType, files: Sequence[str]
) -> tuple[Footer, ...]:
    """The footer of each file, in order. A file that cannot be read has a problem, and stops no other. Raises
    StorageUnreachable.
    """
    storage, reader = Storage(location, options), _READERS[kind]
    return tuple(for_each_file(storage, lambda file: _read(storage, reader, file), files))


def _read(storage: Storage, reader: Callable[[IO[bytes]], tuple[str, int | None]], file: str) -> Footer:
    try:
        with opened(storage, file) as content:
            columns, rows = reader(content)
    except DataFileUnreadable as error:
        return Footer(file, problem=str(error.facts["problem"]))
    return Footer(file, columns, rows)


def _parquet(content: IO[bytes]) -> tuple[str, int | None]:
    found = pq.ParquetFile(content)
    return str(found.schema_arrow.remove_metadata()), found.metadata.num_rows


def _orc(content: IO[bytes]) -> tuple[str, int | None]:
    found = orc.ORCFile(content)
    return str(found.schema.remove_metadata()), found.nrows


def _avro(content: IO[bytes]) -> tuple[str, int | None]:
    """Without the library Spark alone judges the file."""
    try:
        import fastavro
    except ModuleNotFoundError:
        return "", None
    found = fastavro.reader(content)
    return json.dumps(found.writer_schema, sort_keys=True), None


_READERS: Mapping[FileType, Callable[[IO[Any]], tuple[str, int | None]]] = {
    FileType.PARQUET: _parquet,
    FileType.ORC: _orc,
    FileType.AVRO: _avro,
}
