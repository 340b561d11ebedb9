"""Settings of storages: log stores and file systems of a Spark session, as Delta Kernel reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["LOG_STORES", "kernel_settings", "log_store_setting", "log_store_settings"]

LOG_STORES = tuple(
    f"spark.delta.logStore.{scheme}.impl" for scheme in ("s3", "s3a", "s3n", "gs", "abfs", "abfss", "hdfs", "file")
)
"""Spark's settings of log stores for the schemes that tables have."""

_LOG_STORE = re.compile(r"spark\.delta\.logStore\.(\w+)\.impl")
_HADOOP = "spark.hadoop."
_OF_LOG_STORES = "spark.io.delta.storage."  # read under this name, such as the table of S3DynamoDBLogStore


def log_store_setting(scheme: str) -> str:
    """The name under which Delta Kernel looks for the class that writes commits at such URIs."""
    return f"io.delta.kernel.logStore.{scheme}.impl"


def log_store_settings(of_spark: Mapping[str, str]) -> dict[str, str]:
    """Delta Kernel's settings of log stores from those of a Spark session."""
    found = ((_LOG_STORE.fullmatch(name), value) for name, value in of_spark.items())
    return {log_store_setting(named[1]): value for named, value in found if named is not None}


def kernel_settings(of_spark: Mapping[str, str]) -> dict[str, str]:
    """The same, and the settings of file systems and of log stores themselves, by Hadoop's names."""
    file_systems = {name[len(_HADOOP) :]: value for name, value in of_spark.items() if name.startswith(_HADOOP)}
    own = {name: value for name, value in of_spark.items() if name.startswith(_OF_LOG_STORES)}
    return {**file_systems, **own, **log_store_settings(of_spark)}
