"""Whether a session's Spark is in this process's JVM or behind a Spark Connect server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["is_remote", "set_for_now"]


def is_remote(spark: SparkSession) -> bool:
    """Whether it is a session of Spark Connect, which has no SparkContext and no `newSession`."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


@contextmanager
def set_for_now(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """Sets a setting inside that `spark` does not have yet, and unsets it afterwards."""
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name)
