"""Row numbers of files that Spark reads in blocks, several at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["BLOCK", "FILE", "ID", "MODIFIED", "ROW_NUMBER", "blocks_of", "numbered", "placed"]

FILE = "__file"  # Spark's path of the file, percent-encoded
BLOCK = "__block"  # where the block begins in the file, in bytes
ID = "__id"  # ascends within a block, without gaps
MODIFIED = "__modified"  # when the file was
ROW_NUMBER = "__row_number"  # from 1, in the file
_FIRST, _BEFORE = "__first", "__before"


def placed(rows: DataFrame) -> tuple[Column, ...]:
    """FILE, BLOCK, ID and MODIFIED of rows just read. Only directly above the scan are the ids without gaps."""
    metadata = rows.metadataColumn("_metadata")
    return (
        metadata.getField("file_path").alias(FILE),
        metadata.getField("file_block_start").alias(BLOCK),
        F.monotonically_increasing_id().alias(ID),
        metadata.getField("file_modification_time").alias(MODIFIED),
    )


def blocks_of(rows: DataFrame) -> DataFrame:
    """A row for each block: its first id, and the number of rows of the file before it."""
    blocks = rows.groupBy(FILE, BLOCK).agg(F.min(ID).alias(_FIRST), F.count(F.lit(1)).alias("__rows"))
    earlier = Window.partitionBy(FILE).orderBy(BLOCK).rowsBetween(Window.unboundedPreceding, -1)
    return blocks.select(FILE, BLOCK, _FIRST, F.coalesce(F.sum("__rows").over(earlier), F.lit(0)).alias(_BEFORE))


def numbered(rows: DataFrame, blocks: DataFrame) -> DataFrame:
    """The rows with ROW_NUMBER (bigint)."""
    joined = rows.join(F.broadcast(blocks), [FILE, BLOCK])
    number = F.col(ID) - F.col(_FIRST) + F.col(_BEFORE) + 1
    return joined.withColumn(ROW_NUMBER, number).drop(_FIRST, _BEFORE)
