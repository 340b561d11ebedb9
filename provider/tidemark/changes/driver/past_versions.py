"""Reading a version that is older than the table's retention of removed files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.jobs.remote import is_remote
from tidemark.jobs.settings import under

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["read_version"]

_ONLY_WITHIN_RETENTION = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"


def read_version(spark: SparkSession, uri: str, version: int) -> DataFrame:
    """All rows of the version, of any age.

    Delta refuses time travel past `delta.deletedFileRetentionDuration`, since VACUUM may have removed files. Files that
    are kept for a stream are older (R88). The caller must check that the files exist.
    """
    if is_remote(spark):  # the session is the job's own, and reads the setting whenever rows are read
        spark.conf.set(_ONLY_WITHIN_RETENTION, "false")
        return spark.read.format("delta").option("versionAsOf", version).load(uri)
    with under(spark, {_ONLY_WITHIN_RETENTION: "false"}):
        return spark.read.format("delta").option("versionAsOf", version).load(uri)
