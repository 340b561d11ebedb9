"""External tables: data files in a directory, as a stream of their rows sees them (R65)."""

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
    "ExternalTableAsk",
    "FileFormat",
    "Refreshed",
]

FILENAME = "METADATA$FILENAME"
EXTERNAL_TABLE_PROPERTY = "tidemark.externalTable"  # of the Delta table that lists the files: an ExternalTable as JSON


class FileFormat(StrEnum):
    """How the files are written."""

    PARQUET = "parquet"
    JSON = "json"
    CSV = "csv"
    AVRO = "avro"


@dataclass(frozen=True)
class ExternalTable:
    """Files below the directory `location` (a canonical URI) whose names match `pattern`, if there is one.

    `schema_json` is Spark's JSON of the columns, `options` are those of Spark's reader.
    """

    name: str
    location: str
    file_format: FileFormat
    schema_json: str
    options: Mapping[str, str] = field(default_factory=dict)
    pattern: str | None = None


@dataclass(frozen=True)
class ExternalTableAsk:
    """What a user says of an external table: its name alone, where it exists; else also where its files lie and how
    they are written. `schema` is in Spark's DDL, and None where the files are to be asked.
    """

    name: str
    location: str | None = None
    file_format: FileFormat | None = None
    schema: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    pattern: str | None = None


@dataclass(frozen=True)
class DataFile:
    """A file as a refresh has seen it. `path` is relative to the directory; `etag` is the storage's mark of the
    content, empty where it has none. A file with another size, time or mark was overwritten.
    """

    path: str
    size: int
    modified_at: datetime
    etag: str = ""


@dataclass(frozen=True)
class Refreshed:
    """What a refresh found: the version of the list of files, and how many files came, changed and went."""

    table: str
    version: int
    added: int
    overwritten: int
    removed: int
