"""Footers of Parquet and ORC files, and headers of Avro files: their columns, rows and faults."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO, Any

import pyarrow as pa
from pyarrow import orc
from pyarrow import parquet as pq

from tidemark.errors import LakeError, NotAFile
from tidemark.lake.storage import Storage
from tidemark.pipes.driver.unreadable import GONE
from tidemark.pipes.model.formats import FileType

__all__ = ["Footer", "read_footers"]

_AT_ONCE = 16


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
    """The footer of each file, in order. A file that cannot be read has a problem, and stops no other."""
    storage, reader = Storage(location, options), _READERS[kind]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return tuple(pool.map(lambda file: _read(storage, reader, file), files))


def _read(storage: Storage, reader: Callable[[IO[bytes]], tuple[str, int | None]], file: str) -> Footer:
    try:
        with storage.open(file) as opened:
            columns, rows = reader(opened)
    except (pa.ArrowException, OSError, ValueError, LakeError, NotAFile) as error:
        problem = (str(error).strip().splitlines() or [type(error).__name__])[0]
        return Footer(file, problem=GONE if isinstance(error, FileNotFoundError) else problem)
    return Footer(file, columns, rows)


def _parquet(opened: IO[bytes]) -> tuple[str, int | None]:
    found = pq.ParquetFile(opened)
    return str(found.schema_arrow.remove_metadata()), found.metadata.num_rows


def _orc(opened: IO[bytes]) -> tuple[str, int | None]:
    found = orc.ORCFile(opened)
    return str(found.schema.remove_metadata()), found.nrows


def _avro(opened: IO[bytes]) -> tuple[str, int | None]:
    """Without the library Spark alone judges the file."""
    try:
        import fastavro
    except ModuleNotFoundError:
        return "", None
    found = fastavro.reader(opened)
    return json.dumps(found.writer_schema, sort_keys=True), None


_READERS: Mapping[FileType, Callable[[IO[Any]], tuple[str, int | None]]] = {
    FileType.PARQUET: _parquet,
    FileType.ORC: _orc,
    FileType.AVRO: _avro,
}
