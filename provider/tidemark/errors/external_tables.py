"""What is wrong with an external table or its files."""

from __future__ import annotations

from tidemark.errors.sources import SourceError

__all__ = [
    "DataFileChanged",
    "ExternalTableExists",
    "ExternalTableNotFound",
    "FileFormatNotInstalled",
    "FilesHaveNoSchema",
]


class ExternalTableNotFound(SourceError):
    """There is no external table {name!r} under {workspace}. Make it with RefreshExternalTableOperator or
    lake.create_external_table: it says where the files lie and how they are written.
    """


class ExternalTableExists(SourceError):
    """The external table {name!r} exists with another {what}: {there!r}, not {asked!r}. Streams read it as it is; give
    the other one another name.
    """


class FilesHaveNoSchema(SourceError):
    """The columns of the {file_format} files at {location} could not be found out: {problem}. Give a schema, for
    example schema="id BIGINT, amount DECIMAL(10, 2)".
    """


class FileFormatNotInstalled(SourceError):
    """Spark here cannot read {file_format} files. Add the package {package} to it (spark.jars.packages of the
    connection's Spark settings, or the server's own).
    """


class DataFileChanged(SourceError):
    """{count} files of the external table {name!r} are no longer what its last refresh saw; the first is {first}
    ({problem}). Nothing was read. Refresh the table: files that were overwritten are delivered as new by the next
    window, files that are gone by none. A transaction that holds this window has to be rolled back first.
    """
