"""Settings of a session: names that writes share, and values for a while."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["APP_ID", "TXN_VERSION", "USER_METADATA", "local_cores", "planned_once", "under"]


APP_ID = "spark.databricks.delta.write.txnAppId"
TXN_VERSION = "spark.databricks.delta.write.txnVersion"
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_MOST_PARTITIONS = 8  # of few rows; each of the last shuffle is a file of the target


@contextmanager
def under(spark: SparkSession, settings: Mapping[str, str | None]) -> Iterator[None]:
    """Sets these settings of the session inside, None for a default, and restores its own afterwards."""
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            _set(spark, name, value)
        yield
    finally:
        for name, value in before.items():
            _set(spark, name, value)


def planned_once(spark: SparkSession) -> Mapping[str, str | None]:
    """Settings for a query whose few rows meet their partners in broadcasts; none on a cluster.

    An adaptive plan is made again after each of its steps. Each time Delta lists the files of every table
    that is not read yet and may have deletion vectors, in a job.
    """
    cores = local_cores(spark.conf.get("spark.master", None) or "")
    if cores is None:
        return {}
    return {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": str(min(cores, _MOST_PARTITIONS))}


def local_cores(master: str) -> int | None:
    """The tasks at a time of a Spark on this host; None for a cluster."""
    found = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?", master)
    if found is None:
        return None
    if found[1] != "*":
        return int(found[1] or 1)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _set(spark: SparkSession, name: str, value: str | None) -> None:
    if value is None:
        spark.conf.unset(name)
    else:
        spark.conf.set(name, value)
