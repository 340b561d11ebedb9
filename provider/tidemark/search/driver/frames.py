"""Some files of a table as a DataFrame: a log-only table, as change sets have."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from tidemark.changes.driver.files import physical_rows_of
from tidemark.changes.driver.log_only import commit_of, version_column
from tidemark.changes.driver.signed_rows import load_log_only
from tidemark.changes.driver.vector_files import with_stored_vectors
from tidemark.changes.planning import source_schema
from tidemark.changes.planning.sets.forms import form_of
from tidemark.changes.planning.sets.plan import Origin, PlannedFile
from tidemark.jobs.schemas import struct_type
from tidemark.lake.deletion_vectors import movable
from tidemark.lake.paths import file_uri
from tidemark.model.foreign_json import foreign_object
from tidemark.model.table_log import AddFile
from tidemark.search.planning.plain_files import plain_paths

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tidemark.jobs.workspace import Workspace
    from tidemark.search.driver.snapshots import Snapshot

__all__ = ["all_rows_of", "path_of_files", "rows_of_files"]


def rows_of_files(spark: SparkSession, snapshot: Snapshot, files: Iterable[AddFile], workspace: Workspace) -> DataFrame:
    """The rows of these files of the table, without the deleted ones. Lazy, until `workspace` is closed.

    Plain files are read by Spark as Parquet, which takes no job to read a log.
    """
    chosen = tuple(files)
    plain = plain_paths(snapshot.state.metadata, snapshot.log.uri, chosen)
    if plain is None:
        return load_log_only(spark, _log_of(snapshot, chosen, workspace))
    kinds = struct_type(snapshot.state.metadata.schema_json)
    return spark.read.schema(StructType([StructField(one.name, one.dataType) for one in kinds])).parquet(*plain)


def path_of_files(spark: SparkSession, snapshot: Snapshot, files: Iterable[AddFile], workspace: Workspace) -> str:
    """The path of a log-only table with these files of the table, whose log Spark has read."""
    directory = _log_of(snapshot, files, workspace)
    load_log_only(spark, directory)
    return directory


def _log_of(snapshot: Snapshot, files: Iterable[AddFile], workspace: Workspace) -> str:
    return _written(snapshot, [_planned(snapshot, file, 0) for file in files], workspace, marks=False)


def all_rows_of(
    spark: SparkSession, snapshot: Snapshot, numbered: Iterable[tuple[int, AddFile]], workspace: Workspace
) -> tuple[DataFrame, Column]:
    """All rows of files, also deleted ones, and the number of the file of each row. RESTORE may bring deleted rows back
    under the same file.
    """
    planned = [_planned(snapshot, file, number, deleted=True) for number, file in numbered]
    frame = load_log_only(spark, _written(snapshot, planned, workspace, marks=True))
    return frame, F.col(version_column(snapshot.state.metadata))


def _written(snapshot: Snapshot, files: list[PlannedFile], workspace: Workspace, *, marks: bool) -> str:
    metadata = snapshot.state.metadata
    directory = workspace.new_directory()
    stored = with_stored_vectors(files, directory, workspace)
    columns = source_schema.partition_columns(metadata, metadata)
    commit = commit_of(metadata, columns, stored, row_ids=False, marks=marks)
    workspace.write(f"{directory}/_delta_log/{0:020d}.json", commit)
    return directory


def _planned(snapshot: Snapshot, file: AddFile, number: int, *, deleted: bool = False) -> PlannedFile:
    metadata, uri = snapshot.state.metadata, snapshot.log.uri
    columns = source_schema.partition_columns(metadata, metadata)
    vector = None if deleted or file.deletion_vector is None else movable(file.deletion_vector, uri)
    return PlannedFile(
        origin=Origin.ADDED,
        path=file_uri(uri, file.path),
        size=file.size,
        rows=physical_rows_of(snapshot.log, form_of(file, metadata)) - (vector.cardinality if vector else 0),
        partition_columns=columns,
        partition_values=source_schema.partition_values(file.partition_values, columns),
        stats=_loose(file.stats) if file.deletion_vector else file.stats,
        deletion_vector=vector,
        base_row_id=0,
        default_row_commit_version=0,
        version=number,
    )


def _loose(stats: str | None) -> str | None:
    """The stats with loose bounds, since rows are deleted in some version of the file."""
    return json.dumps({**foreign_object(stats), "tightBounds": False}) if stats else None
