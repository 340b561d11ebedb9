"""The SQL settings of the session that created a view, set while the view's text is analysed."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from tidemark.jobs.remote import is_remote
from tidemark.jobs.settings import under

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["queried"]

_NUMBERS = count()


def queried(spark: SparkSession, text: str, frames: Mapping[str, Any], settings: Mapping[str, str | None]) -> DataFrame:
    """The query `text` under `settings`, in which `{name}` is the DataFrame of that name in `frames`. The session's
    settings are not changed.

    Behind Spark Connect a query is analysed each time it runs. There, its analysis under other settings is kept as a
    temporary view of the session, which belongs to the job alone.
    """
    differing = _differing(spark, settings)
    with under(spark, differing):
        found = spark.sql(text, **frames)
        if differing and is_remote(spark):
            name = f"tidemark_query_{next(_NUMBERS)}"
            found.createOrReplaceTempView(name)
            return spark.table(name)
        return found


def _differing(spark: SparkSession, settings: Mapping[str, str | None]) -> dict[str, str | None]:
    return {name: value for name, value in settings.items() if spark.conf.get(name, None) != value}
