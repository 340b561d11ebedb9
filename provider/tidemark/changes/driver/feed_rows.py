"""Delta's change files read as plain Parquet files with row ids, without a log-only table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from tidemark.changes.driver.log_only import CHANGE_TYPE, COMMIT_NAME, OLD_IMAGES, ROW_ID_NAME
from tidemark.changes.planning import source_schema
from tidemark.changes.planning.sets.forms import ADDED, REMOVED
from tidemark.changes.planning.sets.plan import ChangePlan, Origin, PlannedFile
from tidemark.jobs.schemas import struct_type
from tidemark.sql.identifiers import quoted

__all__ = ["BIRTH", "are_plain", "feed_rows", "side_of_change"]

BIRTH = "insert"  # the type of a change without a row id: the file that inserted the row has it

_MOST_FILES = 30  # Spark lists more by a job of its own; a log-only table costs no more then
_GLOB = re.compile(r"[{}\[\]*?\\]")


def are_plain(plan: ChangePlan, files: Sequence[PlannedFile]) -> bool:
    """Whether these change files have the columns of the plan's schema under their names, and are few."""
    settings = plan.metadata.configuration
    return (
        len(files) <= _MOST_FILES
        and source_schema.mapping_mode(plan.metadata) == "none"
        and '"delta.typeChanges"' not in plan.metadata.schema_json
        and {ROW_ID_NAME, COMMIT_NAME} <= settings.keys()
        and not any(file.partition_columns or _GLOB.search(unquote(file.path)) for file in files)
    )


def feed_rows(spark: SparkSession, plan: ChangePlan, files: Sequence[PlannedFile]) -> DataFrame:
    """The rows of plain change files, as in `signed_rows`. This saves a Delta snapshot, most of the cost of a small
    window.
    """
    row_id, commit = (plan.metadata.configuration[name] for name in (ROW_ID_NAME, COMMIT_NAME))
    columns = [
        StructField(field.name, field.dataType, True, field.metadata)
        for field in struct_type(plan.metadata.schema_json).fields
    ]
    ours = [StructField(row_id, LongType()), StructField(commit, LongType()), StructField(CHANGE_TYPE, StringType())]
    table = spark.read.schema(StructType([*columns, *ours])).parquet(*(unquote(file.path) for file in files))
    return table.where(F.col(CHANGE_TYPE) != BIRTH).select(
        F.lit(int(Origin.CHANGES)).alias("origin"),
        _of_file({file.path: file.version for file in files}).alias("version"),
        side_of_change().alias("side"),
        _known(F.col(row_id)).alias("row_id"),
        F.coalesce(commit, _of_file({file.path: file.default_row_commit_version for file in files})).alias("commit"),
        F.struct(*(F.col(quoted(field.name)).alias(field.name) for field in columns)).alias("image"),
    )


def side_of_change() -> Column:
    """−1 for an old image, +1 for a new one."""
    return F.when(F.col(CHANGE_TYPE).isin(*OLD_IMAGES), F.lit(REMOVED)).otherwise(F.lit(ADDED))


def _of_file(values: dict[str, int]) -> Column:
    """The value of a row's file."""
    if len(set(values.values())) == 1:
        return F.lit(next(iter(values.values()))).cast("bigint")
    known = [F.lit(item) for path, value in values.items() for item in (unquote(path).rsplit("/", 1)[-1], value)]
    return F.create_map(*known)[F.col("_metadata.file_name")].cast("bigint")


def _known(row_id: Column) -> Column:
    problem = F.lit("Tidemark: internal error: a change file has an old row without its row id")
    return F.coalesce(row_id, F.raise_error(problem).cast("bigint"))
