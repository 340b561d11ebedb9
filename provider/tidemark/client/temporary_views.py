"""Temporary views that exist while a text is analysed; the analysed plan does not need them.

Spark Connect analyses a query each time that its rows are asked for. There they stay until the session ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from tidemark.jobs.remote import is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["TemporaryViews"]


class TemporaryViews:
    """A context; at its end its views are dropped, unless the session is one of Spark Connect."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.names: list[str] = []

    def of(self, frame: DataFrame) -> str:
        """The name of a view of the frame."""
        name = f"tidemark_sql_{uuid4().hex}"
        frame.createOrReplaceTempView(name)
        self.names.append(name)
        return name

    def __enter__(self) -> TemporaryViews:
        return self

    def __exit__(self, *error: object) -> None:
        if is_remote(self._spark):
            return
        for name in self.names:
            self._spark.catalog.dropTempView(name)
