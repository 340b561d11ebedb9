"""Which modification belongs to which record of its transaction, without sorting a transaction as a whole.

A record is at most this many modifications of one transaction, token, mod_type and set of columns. The rows of a token
are cut into blocks, ranges of buckets. A cell is the rows of a block that belong together. Cells are counted, and get
their numbers by prefix sums. Rows are numbered within their cell, each block by one task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tidemark.change_streams.driver.load import GROUP, bucket_of, in_range
from tidemark.change_streams.model.change_streams import EPOCH, Partition, Position
from tidemark.change_streams.planning.blocks import Block
from tidemark.change_streams.planning.churn import sub_bucket_width
from tidemark.change_streams.planning.segments import SEQUENCE_DIGITS, SegmentStart

__all__ = [
    "CellCount",
    "cell_counts",
    "count_cells",
    "number_cells",
    "numbered",
    "segment_starts",
    "sequence_of",
    "with_blocks",
]

_CELLS_TO_BROADCAST = 1_000_000


@dataclass(frozen=True)
class CellCount:
    """How many cells a batch has, and how many records are made of them."""

    cells: int
    records: int


def with_blocks(staged: DataFrame, blocks: Sequence[Block]) -> DataFrame:
    """Staged rows with `block` and `task`."""
    place = _place(bucket_of(F.col("digest")), blocks)
    return staged.withColumn("place", place).select(*staged.columns, "place.block", "place.task")


def cell_counts(counts: DataFrame, active: Sequence[Partition], blocks: Sequence[Block]) -> DataFrame:
    """The `cell_rows` of each cell, from the counts by parts: a block begins where a part does."""
    lows, widths = (
        F.array(*map(F.lit, numbers))
        for numbers in zip(*((one.lo, sub_bucket_width(one)) for one in active), strict=True)
    )
    low = lows[F.col("token_no")] + F.col("part") * widths[F.col("token_no")]
    blocked = counts.withColumn("block", _place(low, blocks)["block"])
    return blocked.groupBy(*GROUP, "token_no", "block").agg(F.sum("rows").alias("cell_rows"))


def _place(bucket: Column, blocks: Sequence[Block]) -> Column:
    """(block, task) of a bucket."""
    leaves = [
        F.struct(F.lit(number).alias("block"), F.lit(block.task).alias("task")) for number, block in enumerate(blocks)
    ]
    return in_range(bucket, [block.lo for block in blocks], leaves)


def number_cells(counted: DataFrame, transactions: DataFrame, mods_per_record: int) -> DataFrame:
    """A row for each cell of `cell_counts`: its group, token_no and block, and these columns. `at`: the transaction's
    commit timestamp. `first`: the number of the group's first record. `before`: rows of the group in earlier blocks.
    `rows`: rows of the group. `token_before`: rows of its token before the group. `total`, `tokens`: records and
    partitions of the transaction. `last`: its last record in the token.

    `transactions`: table_no, version, at (microseconds since 1970).
    """
    group = Window.partitionBy("at", "kind", "changed", "token_no")
    cells = counted.join(F.broadcast(transactions), ["table_no", "version"]).select(
        "*",
        F.sum("cell_rows").over(group).alias("rows"),
        (F.sum("cell_rows").over(group.orderBy("block")) - F.col("cell_rows")).alias("before"),
    )
    records = F.ceil(F.col("rows") / mods_per_record)
    is_first = F.col("before") == 0
    whole = Window.partitionBy("at")
    cells = cells.select(
        "*",
        (
            F.sum(F.when(is_first, records).otherwise(0)).over(whole.orderBy("kind", "changed", "token_no", "block"))
            - records
        ).alias("first"),
        F.sum(F.when(is_first, records).otherwise(0)).over(whole).alias("total"),
        F.size(F.collect_set("token_no").over(whole)).alias("tokens"),
    )
    in_token = Window.partitionBy("token_no").orderBy("at", "first", "before")
    return cells.select(
        "*",
        (F.max(F.col("first") + records).over(Window.partitionBy("at", "token_no")) - 1).alias("last"),
        (F.sum(F.when(is_first, F.col("rows")).otherwise(0)).over(in_token) - F.col("rows")).alias("token_before"),
    )


def count_cells(cells: DataFrame, mods_per_record: int) -> CellCount:
    """How many cells and records there are."""
    records = F.when(F.col("before") == 0, F.ceil(F.col("rows") / mods_per_record))
    (found,) = cells.agg(F.count(F.lit(1)), F.coalesce(F.sum(records), F.lit(0))).collect()
    return CellCount(found[0], found[1])


def numbered(blocked: DataFrame, cells: DataFrame, count: int, tasks: int, mods_per_record: int) -> DataFrame:
    """Rows of `with_blocks`, in `tasks` partitions, with `at`, `total` and `tokens` of their transaction. They also
    have their `record`, their `mod_number` in it, and whether it `is_last` of the transaction in its token. `count`:
    how many cells there are.
    """
    numbers = cells.select(*GROUP, "block", "at", "first", "before", "total", "tokens", "last")
    if count <= _CELLS_TO_BROADCAST:  # more of them are small, and Spark may shuffle by them
        numbers = F.broadcast(numbers)
    parted = blocked.repartitionById(tasks, "task") if tasks > 1 else blocked.coalesce(1)
    rows = parted.join(numbers, [*GROUP, "block"])
    cell = Window.partitionBy("task", "block", "at", "kind", "changed").orderBy(bucket_of(F.col("digest")), "keys")
    place = F.col("before") + F.row_number().over(cell) - 1
    record = F.col("first") + F.floor(F.col("place") / mods_per_record)
    return rows.withColumn("place", place).select(
        *blocked.columns,
        "at",
        "total",
        "tokens",
        record.alias("record"),
        (F.col("place") % mods_per_record).cast("int").alias("mod_number"),
        (record == F.col("last")).alias("is_last"),
    )


def segment_starts(
    cells: DataFrame, active: Sequence[Partition], mods_per_record: int, segment_rows: int
) -> list[SegmentStart]:
    """The records that hold the first row of a token, and each `segment_rows`th row after it, for every token."""
    first = F.ceil(F.col("token_before") / segment_rows)
    last = F.floor((F.col("token_before") + F.col("rows") - 1) / segment_rows)
    number = F.explode(F.when(first <= last, F.sequence(first, last)))
    held = cells.where("before = 0").select("token_no", "at", "first", "token_before", number.alias("number"))
    record = F.floor((F.col("number") * segment_rows - F.col("token_before")) / mods_per_record)
    starts = held.select(
        "token_no",
        "at",
        sequence_of(F.col("first") + record),
        F.col("token_before") + record * mods_per_record,
    )
    return [
        SegmentStart(active[token_no].token, Position(EPOCH + timedelta(microseconds=at), sequence), rows_before)
        for token_no, at, sequence, rows_before in starts.collect()
    ]


def sequence_of(record: Column) -> Column:
    """The record_sequence of a record."""
    return F.lpad(record.cast("string"), SEQUENCE_DIGITS, "0")
