"""The JVM in which a process commits: that of its Spark driver, or a small one of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from tidemark.channels.driver.jvm import start_engine
from tidemark.channels.driver.kernel import KernelEngine
from tidemark.channels.planning.storages import kernel_settings
from tidemark.jobs.remote import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["engine_of"]


def engine_of(
    spark: SparkSession,
    hadoop: Mapping[str, str] | None = None,
    *,
    start: Callable[[Mapping[str, str]], KernelEngine] = start_engine,
) -> KernelEngine:
    """The engine in the session's JVM. Behind Spark Connect that of `start`, with the session's settings of file
    systems and log stores. `hadoop`: further settings of it, by Hadoop's names.

    Raises IngestUnavailable.
    """
    if not is_remote(spark):
        return KernelEngine.of_session(spark)
    return start({**kernel_settings(spark.conf.getAll), **(hadoop or {})})
