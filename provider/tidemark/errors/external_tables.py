"""Errors of external tables and of their files."""

from __future__ import annotations

from typing import Any

from tidemark.errors.sources import SourceError

__all__ = [
    "DataFileChanged",
    "ExternalTableExists",
    "ExternalTableNotFound",
    "FileFormatNotInstalled",
    "FilesHaveNoSchema",
]


class ExternalTableNotFound(SourceError):
    """The external table {name!r} does not exist under {workspace}. {hint}Create it with RefreshExternalTableOperator
    or lake.external_tables.create. Either takes the location and the format of the files.
    """

    def __init__(self, *, hint: str = "", **facts: Any) -> None:
        super().__init__(hint=hint, **facts)


class ExternalTableExists(SourceError):
    """The external table {name!r} exists with another {what}: {there!r}, not {asked!r}. Streams read it, so it was not
    changed. Choose another name.
    """


class FilesHaveNoSchema(SourceError):
    """The columns of the {file_format} files at {location} could not be inferred: {problem}. Give a schema, for example
    schema="id BIGINT, amount DECIMAL(10, 2)".
    """


class FileFormatNotInstalled(SourceError):
    """Spark cannot read {file_format} files. Add the package {package} to spark.jars.packages, in the Spark
    settings of the connection or of the server.
    """


class DataFileChanged(SourceError):
    """{count} files of the external table {name!r} changed since its last refresh; the first is {first} ({problem}).
    Nothing was read. Roll back any transaction that holds this window, then refresh the table. The next window delivers
    overwritten files as new, and none delivers missing files.
    """
