"""The JVM in which a process commits: that of its Spark driver, or a small one of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.channels.driver.jvm import start_engine
from tidemark.channels.driver.kernel import KernelEngine
from tidemark.jobs.remote import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["engine_of"]

_HADOOP = "spark.hadoop."


def engine_of(spark: SparkSession) -> KernelEngine:
    """The engine in the session's JVM. Behind Spark Connect a new JVM, with the session's settings of file systems.

    Raises IngestUnavailable.
    """
    if not is_remote(spark):
        return KernelEngine.of_session(spark)
    settings: dict[str, str] = dict(spark.conf.getAll)
    return start_engine(
        {name.removeprefix(_HADOOP): value for name, value in settings.items() if name.startswith(_HADOOP)}
    )
