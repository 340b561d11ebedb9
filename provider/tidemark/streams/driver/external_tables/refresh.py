"""The list of an external table's files, kept as a Delta table so that its changes are those of any stream's source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType, TimestampType

from tidemark.changes.driver.data_files import listed_files
from tidemark.errors import ExternalTableExists, ExternalTableNotFound
from tidemark.jobs.spark_failures import SPARK_FAILURES
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.external_tables import definition, external_table_ref, files_of, list_uri
from tidemark.lake.storage import canonical_uri
from tidemark.model.codec import to_json
from tidemark.model.external_tables import (
    EXTERNAL_TABLE_PROPERTY,
    DataFile,
    ExternalTable,
    ExternalTableRequest,
    Refreshed,
)
from tidemark.sql.statements import path_name
from tidemark.streams.driver.external_tables.definition import define, located
from tidemark.streams.planning.external_tables import FileChanges, compare_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["LISTED", "refresh_external_table"]

LISTED = StructType(
    [
        StructField("path", StringType(), False),
        StructField("size", LongType(), False),
        StructField("modified_at", TimestampType(), False),
        StructField("etag", StringType(), False),
    ]
)
GONE = "gone"
_FOR_EVER = "interval 36500 days"
_PROPERTIES = {
    "delta.enableRowTracking": "true",
    "delta.logRetentionDuration": _FOR_EVER,  # a stream on files does not become stale (R88)
    "delta.deletedFileRetentionDuration": _FOR_EVER,
}


def refresh_external_table(
    spark: SparkSession, workspace: str, request: ExternalTableRequest, options: Mapping[str, Any] | None = None
) -> Refreshed:
    """Note which files there are now; streams see what has changed since the last time (R66).

    A table that does not exist yet is created, its first files with it. `workspace` is `<lake root>/_tidemark`. Nothing
    is committed if nothing has changed, so a second run is harmless. Of two at once the later one finds less to do.
    Raises ExternalTableNotFound if `request` is no more than a name and the table does not exist. Raises
    ExternalTableExists if `request` differs from the existing table, and TableNotFound if the directory does not exist.
    Also raises InvalidArgument, FilesHaveNoSchema, FileFormatNotInstalled.
    """
    try:
        log = _opened(workspace, request, options)
    except ExternalTableNotFound:
        if request.location is None:
            raise
        made = _create(spark, workspace, request, options)
        if made is not None:
            return made
        log = _opened(workspace, request, options)
    table = definition(log)
    _require_same(spark, table, request)
    known = listed_files(spark.read.format("delta").load(log.uri))
    changes = compare_files(known, files_of(table, options))
    if not changes.empty:
        _note(spark, log.uri, changes)
    return _refreshed(table.name, log.head(), changes)


def _opened(workspace: str, request: ExternalTableRequest, options: Mapping[str, Any] | None) -> DeltaLog:
    return DeltaLog.open(external_table_ref(workspace, request.name, options).path, options)


def _create(
    spark: SparkSession, workspace: str, request: ExternalTableRequest, options: Mapping[str, Any] | None
) -> Refreshed | None:
    """One commit creates the list with the files of now; None if another refresh has created it in between.

    If an earlier creation died, its files are in the way of a CREATE. The replaced files are no table, unless one is
    created in the moment after the second look. That is the same list then.
    """
    asked = located(request)
    files = files_of(asked, options)
    table = define(spark, asked, request.schema, files)
    writer = _rows(spark, files).drop(GONE).writeTo(path_name(list_uri(workspace, request.name))).using("delta")
    for name, value in {**_PROPERTIES, EXTERNAL_TABLE_PROPERTY: to_json(table)}.items():
        writer = writer.tableProperty(name, value)
    for make in (writer.create, writer.createOrReplace):
        try:
            make()
            return _refreshed(table.name, 0, compare_files((), files))
        except SPARK_FAILURES as error:
            failure = error
        if _is_there(workspace, request, options):
            return None
    raise failure


def _is_there(workspace: str, request: ExternalTableRequest, options: Mapping[str, Any] | None) -> bool:
    try:
        _opened(workspace, request, options)
    except ExternalTableNotFound:
        return False
    return True


def _require_same(spark: SparkSession, table: ExternalTable, request: ExternalTableRequest) -> None:
    """Check that `request`, if it says anything, says the same as the existing table. Raises ExternalTableExists."""
    said: dict[str, tuple[Any, Any]] = {}
    if request.location is not None:
        said["location"] = (table.location, canonical_uri(request.location))
        said["options"] = (dict(table.options), dict(request.options))
        said["pattern"] = (table.pattern, request.pattern)
    if request.file_format is not None:
        said["file_format"] = (table.file_format.value, request.file_format.value)
    if request.schema is not None:
        wanted = define(spark, replace(table, schema_json=""), request.schema, ()).schema_json
        said["schema"] = (table.schema_json, wanted)
    for what, (there, asked) in said.items():
        if there != asked:
            raise ExternalTableExists(name=table.name, what=what, there=there, asked=asked)


def _note(spark: SparkSession, uri: str, changes: FileChanges) -> None:
    """One commit. Another refresh may have noted the same in between: then nothing is left to do for it."""
    found = _rows(spark, (*changes.added, *changes.overwritten)).unionByName(
        _rows(spark, changes.removed).withColumn(GONE, F.lit(True))
    )
    target = path_name(uri)
    new = {name: F.col(f"found.{name}") for name in LISTED.names}
    differs = ~F.struct(*new.values()).eqNullSafe(F.struct(*(F.col(f"{target}.{name}") for name in LISTED.names)))
    gone = F.col(f"found.{GONE}")
    merge = found.alias("found").mergeInto(target, F.col(f"{target}.path").eqNullSafe(F.col("found.path")))
    merge = merge.whenMatched(gone).delete().whenMatched(~gone & differs).update(new)
    merge.whenNotMatched(~gone).insert(new).merge()


def _rows(spark: SparkSession, files: Iterable[DataFile]) -> DataFrame:
    kind = StructType([*LISTED.fields, StructField(GONE, BooleanType(), False)])
    return spark.createDataFrame([(f.path, f.size, f.modified_at, f.etag, False) for f in files], kind)


def _refreshed(name: str, version: int, changes: FileChanges) -> Refreshed:
    return Refreshed(
        table=name,
        version=version,
        added=len(changes.added),
        overwritten=len(changes.overwritten),
        removed=len(changes.removed),
    )
