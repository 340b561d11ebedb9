"""External tables: data files in a directory, as a stream on them reads them (R65)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

__all__ = [
    "EXTERNAL_TABLE_PROPERTY",
    "FILENAME",
    "DataFile",
    "ExternalTable",
    "ExternalTableRequest",
    "FileFormat",
    "Refreshed",
]

FILENAME = "METADATA$FILENAME"
EXTERNAL_TABLE_PROPERTY = "tidemark.externalTable"  # of the Delta table that lists the files: an ExternalTable as JSON


class FileFormat(StrEnum):
    """The formats of data files."""

    PARQUET = "parquet"
    JSON = "json"
    CSV = "csv"
    AVRO = "avro"


@dataclass(frozen=True)
class ExternalTable:
    """Files below the directory `location` (a canonical URI) whose names match `pattern`, if given.

    `schema_json` is Spark's JSON of the columns, `options` are those of Spark's reader.
    """

    name: str
    location: str
    file_format: FileFormat
    schema_json: str
    options: Mapping[str, str] = field(default_factory=dict)
    pattern: str | None = None


@dataclass(frozen=True)
class ExternalTableRequest:
    """A user's request for an external table: its name, and the location and format of its files if it does not exist.

    `schema`: in Spark's DDL; None to infer it from the files.
    """

    name: str
    location: str | None = None
    file_format: FileFormat | None = None
    schema: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    pattern: str | None = None


@dataclass(frozen=True)
class DataFile:
    """A file at the time of a refresh. `path` is relative to the directory. `etag`: the storage's mark of the content,
    empty if it has none. A file with another size, time or mark was overwritten.
    """

    path: str
    size: int
    modified_at: datetime
    etag: str = ""


@dataclass(frozen=True)
class Refreshed:
    """The result of a refresh: the version of the list of files, and its numbers of new, changed and removed files."""

    table: str
    version: int
    added: int
    overwritten: int
    removed: int
