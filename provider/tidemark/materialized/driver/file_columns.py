"""External tables for Spark's analysis of a query: temporary views with their columns."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from tidemark.changes.driver.data_files import columns
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.external_tables import definition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["columns_of_files"]


@contextmanager
def columns_of_files(
    spark: SparkSession, files: Mapping[str, str], options: Mapping[str, str] | None = None
) -> Iterator[dict[str, str]]:
    """The name of each external table → a temporary view with its columns, for as long as the context lasts.

    `files`: name → URI of the list of files. The views are for plans alone, and have no
    rows of the files.
    """
    views: dict[str, str] = {}
    try:
        for name, uri in files.items():
            kind = columns(definition(DeltaLog.open(uri, options)))
            views[name] = f"tidemark_files_{hashlib.sha256(uri.encode()).hexdigest()[:16]}"
            row = F.from_json(F.col("path"), kind)
            rows = spark.read.format("delta").load(uri).select(row.alias("row")).select("row.*")
            rows.createOrReplaceTempView(views[name])
        yield views
    finally:
        for view in views.values():
            spark.catalog.dropTempView(view)
