"""Change sets as DataFrames: the source's columns, then METADATA$ACTION, METADATA$ISUPDATE, METADATA$ROW_ID (R27)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemark.changes.driver.by_key import key_not_unique, key_text, once_each, with_keys_for_ids
from tidemark.changes.driver.few_rows import few_sides
from tidemark.changes.driver.files import require_files, require_files_of
from tidemark.changes.driver.net import CHANGE, changes_of_sides, images_of_sides, net, net_images, unpaired
from tidemark.changes.driver.past_versions import read_version
from tidemark.changes.driver.signed_rows import signed_rows
from tidemark.changes.planning import source_schema
from tidemark.changes.planning.sets.plan import Candidate, ChangePlan, Netting, Origin
from tidemark.changes.planning.source_keys import require_same_keys
from tidemark.changes.planning.source_support import require_readable
from tidemark.jobs.schemas import struct_type
from tidemark.jobs.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import ACTION, COMMIT_TIMESTAMP, COMMIT_VERSION, IS_UPDATE, ROW_ID
from tidemark.model.table_log import Metadata
from tidemark.sql.identifiers import quoted

__all__ = ["read_changed_images", "read_changes", "read_snapshot"]


def read_changes(spark: SparkSession, log: DeltaLog, plan: ChangePlan, workspace: Workspace) -> DataFrame:
    """The changes of `plan`, with the columns of version `end` in its order, followed by METADATA$ACTION,
    METADATA$ISUPDATE and METADATA$ROW_ID. METADATA$ACTION is a string: INSERT or DELETE. METADATA$ISUPDATE is a
    boolean: true on both halves of a pair (R29). METADATA$ROW_ID is a string: table id, colon, row id, or in a plan by
    key the canonical JSON of the key. Plans of every change also have METADATA$COMMIT_VERSION (bigint) and
    METADATA$COMMIT_TIMESTAMP (timestamp).

    Few rows are read at once, and are local from then on. Others are lazy: evaluated at each use, until `workspace` is
    closed. An empty plan reads nothing. Raises VersionVacuumed if files are missing.
    """
    if plan.empty:
        return _nothing(spark, plan)
    require_files(log, plan)
    return _shown(_changes(spark, log, plan, workspace), plan)


def _changes(spark: SparkSession, log: DeltaLog, plan: ChangePlan, workspace: Workspace) -> DataFrame:
    """version, row_id and the struct of `net`, from local rows if they are few."""
    if (sides := few_sides(spark, log, plan)) is not None:
        return changes_of_sides(sides, plan)
    rows = signed_rows(spark, plan, workspace)
    if plan.rows_born and plan.netting is not Netting.ONE_SIDE:
        is_born = F.col("origin") == Origin.BORN
        return net(rows.where(~is_born), plan).unionByName(unpaired(rows.where(is_born)))
    return net(rows, plan)


def _shown(changes: DataFrame, plan: ChangePlan) -> DataFrame:
    return changes.select(
        *(F.col(f"{CHANGE}.image").getField(name).alias(name) for name in _names(plan.metadata)),
        F.col(f"{CHANGE}.action").alias(ACTION),
        F.col(f"{CHANGE}.is_update").alias(IS_UPDATE),
        _row_id(plan.table_id, F.col("row_id"), plan.keys).alias(ROW_ID),
        *_commit_columns(plan),
    )


def read_changed_images(spark: SparkSession, log: DeltaLog, plan: ChangePlan, workspace: Workspace) -> DataFrame:
    """The changes of a `plan` of every change, one row for each row that a commit changed. The columns are version
    (bigint), `old` and `new` (structs of the columns of version `end`). `old` is NULL for an insert, `new` for a
    delete.

    It is lazy in the same way, with the same errors. The plan must not be empty.
    """
    require_files(log, plan)
    if (sides := few_sides(spark, log, plan)) is not None:
        return images_of_sides(sides, plan).select("version", "old", "new")
    return net_images(signed_rows(spark, plan, workspace), plan).select("version", "old", "new")


def read_snapshot(
    spark: SparkSession,
    log: DeltaLog,
    version: int,
    *,
    keys: tuple[str, ...] = (),
    with_commit: bool = False,
    reader: str = "CHANGES",
) -> DataFrame:
    """All rows of a version as inserts (R10); columns as in `read_changes`, lazy in the same way.

    With `keys`, row tracking may be off. `with_commit` adds METADATA$COMMIT_VERSION and METADATA$COMMIT_TIMESTAMP of
    the version, even if an earlier commit inserted a row. Raises RowTrackingDisabled, UnsupportedTableFeature,
    VersionVacuumed, LogIncomplete, VersionNotFound, KeyColumnChanged.
    """
    state = log.state(version)
    name = f"delta.`{log.uri}`"
    require_readable(state, name, row_ids=not keys)
    require_same_keys(state.metadata, state.metadata, keys, stream=reader, table=name, start=version, end=version)
    table = read_version(spark, log.uri, version)
    require_files_of(log, table, version, version)
    names = _names(state.metadata)
    image = F.struct(*(F.col(quoted(name)).alias(name) for name in names)).alias("image")
    if keys:
        failure = key_not_unique(
            stream=reader, table=log.uri, keys=keys, start=version, end=version, old=F.lit(0), new=F.col("times_new")
        )
        rows = table.select(image).transform(with_keys_for_ids, keys).transform(once_each, failure)
    else:
        rows = table.select(table.metadataColumn("_metadata").getField("row_id").alias("row_id"), image)
    commit: list[Column] = []
    if with_commit:
        commit = [
            F.lit(version).cast("bigint").alias(COMMIT_VERSION),
            F.lit(log.timestamp(version)).alias(COMMIT_TIMESTAMP),
        ]
    return rows.select(
        *(F.col("image").getField(name).alias(name) for name in names),
        F.lit("INSERT").alias(ACTION),
        F.lit(False).alias(IS_UPDATE),
        _row_id(state.table_id, F.col("row_id"), keys).alias(ROW_ID),
        *commit,
    )


def _commit_columns(plan: ChangePlan) -> list[Column]:
    """Version and time of the commit that made a change."""
    if plan.candidate is not Candidate.EACH:
        return []
    times = [F.lit(item) for version, time in (plan.times or {}).items() for item in (version, time)]
    return [
        F.col("version").alias(COMMIT_VERSION),
        F.create_map(*times)[F.col("version")].alias(COMMIT_TIMESTAMP),
    ]


def _nothing(spark: SparkSession, plan: ChangePlan) -> DataFrame:
    kind = struct_type(plan.metadata.schema_json)
    for name, text in ((ACTION, "string"), (IS_UPDATE, "boolean"), (ROW_ID, "string")):
        kind = kind.add(name, text)
    if plan.times is not None:
        kind = kind.add(COMMIT_VERSION, "long").add(COMMIT_TIMESTAMP, "timestamp")
    return spark.createDataFrame([], kind)


def _names(metadata: Metadata) -> list[str]:
    return [field.name for field in source_schema.fields(metadata)]


def _row_id(table_id: str, row_id: Column, keys: Sequence[str]) -> Column:
    return F.concat(F.lit(f"{table_id}:"), key_text(row_id) if keys else row_id.cast("string"))
