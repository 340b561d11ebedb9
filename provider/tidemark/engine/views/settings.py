"""A view's text means what it meant to the session that made it: its SQL settings, for as long as it is analysed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

from tidemark.engine.remote import is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["queried", "under"]

_NUMBERS = count()


def queried(spark: SparkSession, text: str, frames: Mapping[str, Any], settings: Mapping[str, str | None]) -> DataFrame:
    """The query `text` under `settings`, in which `{name}` stands for the DataFrame of that name in `frames`. The
    session's settings stay.

    Behind Spark Connect a query is analysed each time it runs. What other settings have made of it is kept there as a
    temporary view of the session, which a job has for itself.
    """
    differing = _differing(spark, settings)
    with under(spark, differing):
        found = spark.sql(text, **frames)
        if differing and is_remote(spark):
            name = f"tidemark_query_{next(_NUMBERS)}"
            found.createOrReplaceTempView(name)
            return spark.table(name)
        return found


@contextmanager
def under(spark: SparkSession, settings: Mapping[str, str | None]) -> Iterator[None]:
    """The session with these settings inside, None for a default, and with its own after."""
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            _set(spark, name, value)
        yield
    finally:
        for name, value in before.items():
            _set(spark, name, value)


def _differing(spark: SparkSession, settings: Mapping[str, str | None]) -> dict[str, str | None]:
    return {name: value for name, value in settings.items() if spark.conf.get(name, None) != value}


def _set(spark: SparkSession, name: str, value: str | None) -> None:
    if value is None:
        spark.conf.unset(name)
    else:
        spark.conf.set(name, value)
