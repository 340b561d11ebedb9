"""Whether a session's Spark is in this process's JVM or behind a Spark Connect server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["is_remote", "set_for_now"]


def is_remote(spark: SparkSession) -> bool:
    """True for a session of Spark Connect: it has no SparkContext and no `newSession`."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


@contextmanager
def set_for_now(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """A setting that `spark` does not have yet, set inside and unset after."""
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name)
