"""The load of a batch's staged modifications: rows by transaction and by part of a partition, and keys that occur
twice. One query, which stages and counts them too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemark.change_streams.driver.modifications import RANKS
from tidemark.change_streams.model.change_streams import BUCKETS, ModType, Partition
from tidemark.change_streams.planning.churn import sub_bucket_width

__all__ = [
    "GROUP",
    "BatchLoad",
    "DoubledKey",
    "bucket_of",
    "counted",
    "doubled_key",
    "in_range",
    "weigh",
    "with_places",
]

GROUP = ("table_no", "version", "kind", "changed")
"""The columns that all rows of a record have in common, beside their token."""


@dataclass(frozen=True)
class BatchLoad:
    """Rows by (table number, version), and by token and sub-bucket. `suspects`: keys that may occur twice in a
    transaction; none if it is 0.
    """

    transactions: Mapping[tuple[int, int], int]
    tokens: Mapping[str, Mapping[int, int]]
    suspects: int

    @property
    def rows(self) -> int:
        """All of them."""
        return sum(self.transactions.values())

    @property
    def token_rows(self) -> dict[str, int]:
        """Those of each token."""
        return {token: sum(parts.values()) for token, parts in self.tokens.items()}


@dataclass(frozen=True)
class DoubledKey:
    """A key that a transaction has more often than a modification and a replacement can make it."""

    table_no: int
    version: int
    keys: str
    mod_type: ModType
    times: int


def bucket_of(digest: Column) -> Column:
    """The bucket of a key, by the digest of its text."""
    return F.pmod(digest, F.lit(BUCKETS)).cast("int")


def in_range(bucket: Column, starts: Sequence[int], leaf: Sequence[Column]) -> Column:
    """The leaf of the last start that is not past the bucket, found by bisection; `starts` ascend from 0."""
    if len(leaf) == 1:
        return leaf[0]
    half = len(leaf) // 2
    left = in_range(bucket, starts[:half], leaf[:half])
    return F.when(bucket < starts[half], left).otherwise(in_range(bucket, starts[half:], leaf[half:]))


def with_places(mods: DataFrame, active: Sequence[Partition]) -> DataFrame:
    """Modifications with `digest` of their key, `token_no`, their partition's number in `active`, and `part`, its
    sub-bucket. `active` is in the order of its ranges.
    """
    bucket = bucket_of(F.col("digest"))
    places = [
        F.struct(
            F.lit(number).alias("token_no"),
            F.floor((bucket - partition.lo) / sub_bucket_width(partition)).cast("int").alias("part"),
        )
        for number, partition in enumerate(active)
    ]
    place = in_range(bucket, [partition.lo for partition in active], places)
    digested = mods.withColumn("digest", F.xxhash64("keys"))
    return digested.select("*", place.alias("place")).select(*mods.columns, "digest", "place.token_no", "place.part")


def counted(staged: DataFrame) -> DataFrame:
    """The `rows` of each group in each part of a partition, of `with_places`. All other counts are sums of these."""
    return staged.groupBy(*GROUP, "token_no", "part").agg(F.count(F.lit(1)).alias("rows"))


def weigh(staged: DataFrame, counts: DataFrame, active: Sequence[Partition]) -> BatchLoad:
    """The load of `with_places` and its `counted`, in one query."""
    transactions = counts.groupBy("table_no", "version").agg(F.sum("rows").alias("count"))
    parts = counts.groupBy("token_no", "part").agg(F.sum("rows").alias("count"))
    suspects = _counted_keys(staged, "digest").where(_is_too_often()).agg(F.count(F.lit(1)).alias("count"))
    found = _tagged(transactions, "transaction", "table_no", "version").unionAll(
        _tagged(parts, "part", "token_no", "part")
    )
    by_transaction: dict[tuple[int, int], int] = {}
    by_token: dict[str, dict[int, int]] = defaultdict(dict)
    doubled = 0
    for kind, first, second, count in found.unionAll(_tagged(suspects, "suspects", F.lit(0), F.lit(0))).collect():
        if kind == "transaction":
            by_transaction[first, second] = count
        elif kind == "part":
            by_token[active[first].token][second] = count
        else:
            doubled = count
    return BatchLoad(by_transaction, by_token, doubled)


def doubled_key(staged: DataFrame) -> DoubledKey | None:
    """One of the keys that occur twice; None if only digests do."""
    found = _counted_keys(staged, "digest", "keys").where(_is_too_often())
    for row in found.orderBy("table_no", "version", "keys").limit(1).collect():
        times = {kind: row[kind.value] for kind in ModType}
        worst = max(times, key=lambda kind: times[kind])
        return DoubledKey(row["table_no"], row["version"], row["keys"], worst, times[worst])
    return None


def _tagged(counted: DataFrame, kind: str, first: str | Column, second: str | Column) -> DataFrame:
    one, other = (F.col(column) if isinstance(column, str) else column for column in (first, second))
    return counted.select(F.lit(kind), one.cast("int"), other.cast("bigint"), "count")


def _counted_keys(staged: DataFrame, *key: str) -> DataFrame:
    counts = [F.count(F.when(F.col("kind") == rank, 1)).alias(kind.value) for kind, rank in RANKS.items()]
    return staged.groupBy("table_no", "version", *key).agg(*counts)


def _is_too_often() -> Column:
    """A key has one modification in a transaction, or a DELETE and an INSERT, which are a replacement."""
    deletes, updates, inserts = (F.col(kind.value) for kind in (ModType.DELETE, ModType.UPDATE, ModType.INSERT))
    return (F.greatest(deletes, updates, inserts) > 1) | ((updates > 0) & (deletes + inserts > 0))
