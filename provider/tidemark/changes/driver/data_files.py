"""Data files of external tables as rows, and the lists that have them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tidemark.jobs.schemas import struct_type
from tidemark.model.external_tables import FILENAME, DataFile, ExternalTable, FileFormat
from tidemark.model.streams import ACTION, IS_UPDATE, ROW_ID
from tidemark.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.readwriter import DataFrameReader

__all__ = [
    "WHOLE_FILES",
    "columns",
    "escaped",
    "listed_changes",
    "listed_files",
    "reader",
    "relative_name",
    "rows_of_files",
    "spark_path",
]

_GLOB = re.compile(r"([\\*?\[\]{}])")
WHOLE_FILES = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}  # against the session: no row is left out
_STRICT: Mapping[FileFormat, Mapping[str, str]] = {
    FileFormat.JSON: {"mode": "FAILFAST"},  # Spark's default makes NULLs of what it cannot read
    FileFormat.CSV: {"mode": "FAILFAST"},
}


def columns(table: ExternalTable) -> StructType:
    """The columns of the files."""
    return struct_type(table.schema_json)


def reader(spark: SparkSession, file_format: FileFormat, options: Mapping[str, str]) -> DataFrameReader:
    """Spark's reader for the format. A record that cannot be read fails the query, unless `options` say otherwise."""
    given = {name.lower() for name in options}
    defaults = {**WHOLE_FILES, **_STRICT.get(file_format, {})}
    chosen = {**{name: value for name, value in defaults.items() if name.lower() not in given}, **options}
    return spark.read.format(file_format.value).options(**chosen)


def spark_path(table: ExternalTable, file: DataFile) -> str:
    """A file as Spark's reader takes it, which reads patterns."""
    return escaped(f"{table.location}/{file.path}")


def escaped(path: str) -> str:
    """The pattern that only this path matches."""
    return _GLOB.sub(r"\\\1", path)


def rows_of_files(spark: SparkSession, table: ExternalTable, files: Sequence[DataFile]) -> DataFrame:
    """All rows of `files` as inserts: the table's columns, then METADATA$ACTION (INSERT) and METADATA$ISUPDATE (false).
    METADATA$ROW_ID (string, NULL: R34) and METADATA$FILENAME (string, relative to the table's directory) follow. Lazy.
    """
    kind = columns(table)
    if not files:
        for name, text in ((ACTION, "string"), (IS_UPDATE, "boolean"), (ROW_ID, "string"), (FILENAME, "string")):
            kind = kind.add(name, text)
        return spark.createDataFrame([], kind)
    loaded = reader(spark, table.file_format, table.options).schema(kind).load([spark_path(table, f) for f in files])
    path = loaded.metadataColumn("_metadata").getField("file_path")
    return loaded.select(
        *(F.col(quoted(field.name)) for field in kind.fields),
        F.lit("INSERT").alias(ACTION),
        F.lit(False).alias(IS_UPDATE),
        F.lit(None).cast("string").alias(ROW_ID),
        relative_name(path, table.location).alias(FILENAME),
    )


def relative_name(path: Column, location: str) -> Column:
    """Spark's path of a file, which is percent-encoded, below `location`, which is not."""
    decoded = F.regexp_replace(F.url_decode(F.replace(path, F.lit("+"), F.lit("%2B"))), "^file:/+", "file:///")
    below = F.startswith(decoded, F.lit(f"{location}/"))
    return F.when(below, F.substring(decoded, len(location) + 2, 1 << 20)).otherwise(decoded)


def listed_files(rows: DataFrame) -> list[DataFile]:
    """The files in the list of an external table, or in a part of it."""
    return [_data_file(row) for row in _listed(rows).collect()]


def listed_changes(changes: DataFrame) -> tuple[list[DataFile], list[DataFile]]:
    """The files that came and those that went, by the changes of a list."""
    came: list[DataFile] = []
    went: list[DataFile] = []
    for row in _listed(changes, quoted(ACTION)).collect():
        (went if row[ACTION] == "DELETE" else came).append(_data_file(row))
    return came, went


def _listed(rows: DataFrame, *more: str) -> DataFrame:
    return rows.select("path", "size", F.unix_millis("modified_at").alias("modified_at"), "etag", *more)


def _data_file(row: Row) -> DataFile:
    modified_at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=row["modified_at"])
    return DataFile(path=row["path"], size=row["size"], modified_at=modified_at, etag=row["etag"])
