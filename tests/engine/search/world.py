"""A lake with a table of several files, and the comparison of searches with scans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tidemark.client import connect
from tidemark.client.lake import Lake
from tidemark.client.query_result import QueryResult

__all__ = ["COLUMNS", "SearchWorld", "texts"]

COLUMNS = (
    "CONCAT('key-', LPAD(id, 6, '0')) AS id",
    "CAST(id AS INT) AS n",
    "CAST(id % 7 AS BIGINT) AS g",
    "DATE_ADD(DATE'2026-01-01', CAST(id % 100 AS INT)) AS d",
    "CAST(id / 4 AS DECIMAL(12, 2)) AS m",
    "TIMESTAMP_MICROS(1770000000000000 + id * 1000001) AS t",
    "CONCAT('the text ', MD5(CAST(id AS STRING)), ' ends') AS words",
    "ARRAY(CONCAT('tag', id % 50), CONCAT('odd', id)) AS tags",
    "NAMED_STRUCT('f', CONCAT('f', id), 'k', id) AS s",
)


class SearchWorld:
    """`shop.orders` below the root of a lake, in files of 100 rows that follow each other."""

    def __init__(self, spark: SparkSession, root: Path, store: str) -> None:
        self.spark, self.root, self.store = spark, root, store
        self.path = root / "shop" / "orders"

    def client(self, spark: SparkSession | Callable[[], SparkSession] | None = None, **more: Any) -> Lake:
        session = self.spark if spark is None else spark
        return connect(session, self.store, lake_root=str(self.root), **more)

    def fill(self, files: int, *, start: int = 0, columns: Sequence[str] = COLUMNS) -> None:
        """So many more files."""
        rows = self.spark.range(start, start + 100 * files, 1, files).selectExpr(*columns)
        writer = rows.write.format("delta").mode("append").option("delta.enableDeletionVectors", "true")
        writer.save(str(self.path))

    def sql(self, text: str) -> None:
        self.spark.sql(text.replace("orders", f"delta.`{self.path}`")).collect()

    def scan(self, where: str) -> list[str]:
        """The rows for which the predicate is true, by a scan of Spark alone."""
        return texts(self.spark.read.format("delta").load(str(self.path)).where(where))


def texts(rows: DataFrame | QueryResult) -> list[str]:
    """The rows as sorted texts."""
    return sorted(repr(row.asDict(recursive=True)) for row in rows.collect())
