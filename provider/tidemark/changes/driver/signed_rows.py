"""The rows that a plan reads, each with its side: log-only tables, united into one DataFrame."""

from __future__ import annotations

from collections import defaultdict
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemark.changes.driver.by_key import with_keys_for_ids
from tidemark.changes.driver.feed_rows import BIRTH, are_plain, feed_rows, side_of_change
from tidemark.changes.driver.log_only import CHANGE_TYPE, commit_of, origin_column, version_column
from tidemark.changes.driver.planned_files import FEED_ROW_IDS_FROM
from tidemark.changes.driver.vector_files import with_stored_vectors
from tidemark.changes.planning import source_schema
from tidemark.changes.planning.sets.forms import ADDED
from tidemark.changes.planning.sets.plan import ChangePlan, Origin, PlannedFile
from tidemark.jobs.remote import is_remote, set_for_now
from tidemark.jobs.workspace import Workspace
from tidemark.sql.identifiers import quoted

__all__ = ["load_log_only", "log_only_groups", "signed_rows"]

_REPLAY_PARTITIONS = "spark.databricks.delta.snapshotPartitions"
_STORAGE_SETTINGS = ("fs.", "spark.hadoop.")


def signed_rows(spark: SparkSession, plan: ChangePlan, workspace: Workspace) -> DataFrame:
    """The rows of `plan`, lazily: origin (int), version (bigint), side (int: −1 or +1), row_id, commit (bigint), image
    (struct). `version`: the commit for every change, else 0. `commit`: the version that last changed the row. `image`:
    the columns of the plan's schema. If the plan compares by key, row_id is the struct of the key columns, and commit
    the side.
    """
    rows = reduce(
        DataFrame.unionByName, [_rows(spark, plan, files, workspace) for files in log_only_groups(plan.files)]
    )
    if not plan.keys:
        return rows
    # no two states cancel without a comparison
    return rows.transform(with_keys_for_ids, plan.keys).withColumn("commit", F.col("side").cast("bigint"))


def log_only_groups(files: tuple[PlannedFile, ...]) -> list[list[PlannedFile]]:
    """Groups of files, each for one log-only table: partitioned in the same way, all change files or none, each file
    once.
    """
    tables: dict[tuple[tuple[str, ...], bool, int], list[PlannedFile]] = defaultdict(list)
    times: dict[tuple[str, str | None], int] = defaultdict(int)
    for file in files:
        tables[file.partition_columns, file.origin is Origin.CHANGES, times[file.key]].append(file)
        times[file.key] += 1
    return list(tables.values())


def _rows(spark: SparkSession, plan: ChangePlan, files: list[PlannedFile], workspace: Workspace) -> DataFrame:
    if files[0].origin is Origin.CHANGES and are_plain(plan, files):
        return feed_rows(spark, plan, files)
    directory = workspace.new_directory()
    stored = with_stored_vectors(files, directory, workspace)
    commit = commit_of(plan.metadata, files[0].partition_columns, stored, row_ids=not plan.keys)
    workspace.write(f"{directory}/_delta_log/{0:020d}.json", commit)
    table = load_log_only(spark, directory)
    hidden = table.metadataColumn("_metadata")
    origin = F.col(origin_column(plan.metadata))
    row_id, changed = (
        (F.lit(None), F.lit(None)) if plan.keys else (hidden.getField("row_id"), hidden.getField("row_commit_version"))
    )
    origins = {file.origin for file in files}
    if Origin.BORN in origins:
        born_here = row_id >= hidden.getField("base_row_id")
        table = table.where(born_here if origins == {Origin.BORN} else born_here | (origin != Origin.BORN))
    if Origin.CHANGES in origins:
        table = table.where(F.col(CHANGE_TYPE) != BIRTH)
    return table.select(
        origin.alias("origin"),
        F.col(version_column(plan.metadata)).alias("version"),
        _side(origin, origins).alias("side"),
        (_known(row_id) if Origin.CHANGES in origins else row_id).alias("row_id"),
        changed.alias("commit"),
        F.struct(*(F.col(quoted(field.name)).alias(field.name) for field in source_schema.fields(plan.metadata))).alias(
            "image"
        ),
    )


def _side(origin: Column, origins: set[Origin]) -> Column:
    if Origin.CHANGES in origins:
        return side_of_change()
    return F.when(origin == Origin.BORN, F.lit(ADDED)).otherwise(origin) if Origin.BORN in origins else origin


def _known(row_id: Column) -> Column:
    problem = F.lit("Tidemark: internal error: a change file has an old row without its row id")
    return F.when(row_id >= FEED_ROW_IDS_FROM, F.raise_error(problem)).otherwise(row_id)


def load_log_only(spark: SparkSession, directory: str) -> DataFrame:
    """The log-only table at `directory`, its log replayed in one partition.

    Delta replays a log in 50 partitions by default, and caches the result for all sessions. So unless the session sets
    the number itself, another session reads the log first. This takes an eighth of the CPU, and does not change the
    user's settings. A session behind Spark Connect creates no others, and belongs to its job alone.
    """
    if spark.conf.get(_REPLAY_PARTITIONS, None) is None and is_remote(spark):
        with set_for_now(spark, _REPLAY_PARTITIONS, "1"):
            spark.read.format("delta").load(directory).inputFiles()
    elif spark.conf.get(_REPLAY_PARTITIONS, None) is None:
        first = spark.newSession()
        for name, value in spark.conf.getAll.items():
            if name.startswith(_STORAGE_SETTINGS):
                first.conf.set(name, value)
        first.conf.set(_REPLAY_PARTITIONS, "1")
        first.read.format("delta").load(directory).inputFiles()
    return spark.read.format("delta").load(directory)
