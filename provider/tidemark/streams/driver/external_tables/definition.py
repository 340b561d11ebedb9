"""The definition of an external table: its columns and how its files are read, found out once, when it is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, ParseException, PySparkException

from tidemark.changes.driver.data_files import columns, reader, spark_path
from tidemark.delivery.driver.fit import METADATA_COLUMNS
from tidemark.errors import FileFormatNotInstalled, FilesHaveNoSchema, InvalidArgument
from tidemark.lake.storage import canonical_uri
from tidemark.model.external_tables import DataFile, ExternalTable, ExternalTableRequest, FileFormat
from tidemark.model.spark import AVRO_PACKAGE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

__all__ = ["define", "located"]

_PACKAGES: Mapping[FileFormat, str] = {FileFormat.AVRO: AVRO_PACKAGE}


def located(request: ExternalTableRequest) -> ExternalTable:
    """The table that `request` describes, its columns still unknown. Raises InvalidArgument."""
    if request.location is None or request.file_format is None:
        lacking = "location" if request.location is None else "file_format"
        problem = f"{request.name!r} does not exist yet: say where its files lie and how they are written"
        raise InvalidArgument(argument=lacking, value=None, problem=problem)
    return ExternalTable(
        name=request.name,
        location=canonical_uri(request.location),
        file_format=request.file_format,
        schema_json="",
        options=dict(request.options),
        pattern=request.pattern,
    )


def define(spark: SparkSession, table: ExternalTable, schema: str | None, files: Sequence[DataFile]) -> ExternalTable:
    """`table` with its columns: those of `schema`, else those that Spark finds in `files`.

    Raises InvalidArgument for a schema that cannot be read, FilesHaveNoSchema, FileFormatNotInstalled.
    """
    kind = _inferred(spark, table, files) if schema is None else _parsed(spark, schema)
    taken = [field.name for field in kind.fields if field.name.upper() in METADATA_COLUMNS]
    if taken:
        problem = f"the stream has a column {taken[0]} of its own: give a schema without it"
        raise FilesHaveNoSchema(file_format=table.file_format.value, location=table.location, problem=problem)
    defined = replace(table, schema_json=kind.json())
    _require_readable(spark, defined)
    return defined


def _parsed(spark: SparkSession, schema: str) -> StructType:
    try:
        return spark.createDataFrame([], schema).schema
    except (ParseException, AnalysisException, PySparkException) as error:
        problem = f"Spark cannot read it as the columns of a table: {str(error).splitlines()[0]}"
        raise InvalidArgument(argument="schema", value=schema, problem=problem) from error


def _inferred(spark: SparkSession, table: ExternalTable, files: Sequence[DataFile]) -> StructType:
    if not files:
        raise _no_schema(table, "there are none yet")
    options = {"inferSchema": "true", **table.options}
    try:
        loaded = reader(spark, table.file_format, options).load([spark_path(table, file) for file in files])
        kind = loaded.schema
    except AnalysisException as error:
        raise _as_known(table, error) from error
    except PySparkException as error:
        raise _no_schema(table, str(error).splitlines()[0]) from error
    if not kind.fields:
        raise _no_schema(table, "they hold no column")
    return kind


def _require_readable(spark: SparkSession, table: ExternalTable) -> None:
    """Spark has the format's reader, and it takes the columns and options."""
    try:
        reader(spark, table.file_format, table.options).schema(columns(table)).load([]).schema  # noqa: B018
    except AnalysisException as error:
        raise _as_known(table, error) from error


def _as_known(table: ExternalTable, error: AnalysisException) -> Exception:
    package = _PACKAGES.get(table.file_format)
    if package is not None and "find" in str(error).lower():
        return FileFormatNotInstalled(file_format=table.file_format.value, package=package)
    return _no_schema(table, str(error).splitlines()[0])


def _no_schema(table: ExternalTable, problem: str) -> FilesHaveNoSchema:
    return FilesHaveNoSchema(file_format=table.file_format.value, location=table.location, problem=problem)
