"""Change sets as DataFrames: the source's columns, then METADATA$ACTION, METADATA$ISUPDATE, METADATA$ROW_ID (R27)."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import reduce
from urllib.parse import quote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tidemark.engine.changes.files import require_files, require_present
from tidemark.engine.changes.log_only import commit_of, side_column
from tidemark.engine.changes.net import CHANGE, net
from tidemark.engine.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import ACTION, IS_UPDATE, ROW_ID
from tidemark.model.table_log import Metadata
from tidemark.planning.change_sets import Candidate, ChangePlan, PlannedFile
from tidemark.planning.source_support import require_readable

__all__ = ["read_changes", "read_snapshot"]

_REPLAY_PARTITIONS = "spark.databricks.delta.snapshotPartitions"
_STORAGE_SETTINGS = ("fs.", "spark.hadoop.")


def read_changes(spark: SparkSession, log: DeltaLog, plan: ChangePlan, workspace: Workspace) -> DataFrame:
    """The changes of `plan`, with the columns of version `end` in its order and then METADATA$ACTION (string: INSERT
    or DELETE), METADATA$ISUPDATE (boolean: true on both halves of a pair, R29), METADATA$ROW_ID (string: table id,
    colon, row id).

    Lazy: evaluated as often as it is used, until `workspace` is closed. An empty plan reads nothing. Raises
    VersionVacuumed if files are gone by now.
    """
    if plan.empty:
        return _nothing(spark, plan.metadata)
    require_files(log, plan)
    groups: dict[tuple[str, ...], list[PlannedFile]] = defaultdict(list)
    for file in plan.files:
        groups[file.partition_columns].append(file)
    parts = [_rows(spark, plan, columns, files, workspace) for columns, files in groups.items()]
    rows = reduce(DataFrame.unionByName, parts)
    changes = net(rows, plan.netting, sum(file.rows for file in plan.files))
    return changes.select(
        *(_field(f"{CHANGE}.image", name) for name in _names(plan.metadata)),
        F.col(f"{CHANGE}.action").alias(ACTION),
        F.col(f"{CHANGE}.is_update").alias(IS_UPDATE),
        _row_id(plan.table_id, F.col("row_id")).alias(ROW_ID),
    )


def read_snapshot(spark: SparkSession, log: DeltaLog, version: int) -> DataFrame:
    """All rows of a version as inserts (R10); columns as in `read_changes`, lazy in the same way.

    Raises RowTrackingDisabled, UnsupportedTableFeature, VersionVacuumed, LogIncomplete, VersionNotFound.
    """
    state = log.state(version)
    require_readable(state, f"delta.`{log.uri}`")
    table = spark.read.format("delta").option("versionAsOf", version).load(log.uri)
    require_present(log, map(_encoded, table.inputFiles()), version, version)
    return table.select(
        *(F.col(_quoted(name)) for name in _names(state.metadata)),
        F.lit("INSERT").alias(ACTION),
        F.lit(False).alias(IS_UPDATE),
        _row_id(state.table_id, table.metadataColumn("_metadata").getField("row_id")).alias(ROW_ID),
    )


def _rows(
    spark: SparkSession, plan: ChangePlan, columns: tuple[str, ...], files: list[PlannedFile], workspace: Workspace
) -> DataFrame:
    """side, row_id, commit, image of the files that are partitioned by `columns`."""
    directory = workspace.new_directory()
    workspace.write(f"{directory}/_delta_log/{0:020d}.json", commit_of(plan.metadata, columns, files))
    table = _loaded(spark, directory)
    hidden = table.metadataColumn("_metadata")
    row_id = hidden.getField("row_id")
    if plan.candidate is Candidate.BIRTHS:
        table = table.where((row_id >= hidden.getField("base_row_id")) & (row_id >= plan.first_new_row_id))
    return table.select(
        F.col(side_column(plan.metadata)).alias("side"),
        row_id.alias("row_id"),
        hidden.getField("row_commit_version").alias("commit"),
        F.struct(*(F.col(_quoted(name)).alias(name) for name in _names(plan.metadata))).alias("image"),
    )


def _loaded(spark: SparkSession, directory: str) -> DataFrame:
    """The log-only table at `directory`, its log replayed in one partition.

    Delta replays a log in 50 partitions by default, and keeps the result for all sessions. So unless the session has
    its own mind about it, another session looks first: the user's settings stay as they are, at an eighth of the CPU.
    """
    if spark.conf.get(_REPLAY_PARTITIONS, None) is None:
        first = spark.newSession()
        for name, value in spark.conf.getAll.items():
            if name.startswith(_STORAGE_SETTINGS):
                first.conf.set(name, value)
        first.conf.set(_REPLAY_PARTITIONS, "1")
        first.read.format("delta").load(directory).inputFiles()
    return spark.read.format("delta").load(directory)


def _nothing(spark: SparkSession, metadata: Metadata) -> DataFrame:
    kind = StructType.fromJson(json.loads(metadata.schema_json))
    for name, text in ((ACTION, "string"), (IS_UPDATE, "boolean"), (ROW_ID, "string")):
        kind = kind.add(name, text)
    return spark.createDataFrame([], kind)


def _names(metadata: Metadata) -> list[str]:
    return [field["name"] for field in json.loads(metadata.schema_json)["fields"]]


def _row_id(table_id: str, row_id: Column) -> Column:
    return F.concat(F.lit(f"{table_id}:"), row_id.cast("string"))


def _field(struct: str, name: str) -> Column:
    return F.col(struct).getField(name).alias(name)


def _encoded(path: str) -> str:
    """Spark names files without percent-encoding."""
    scheme, rest = path.split(":", 1)
    return f"{scheme}:{quote(rest)}"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
