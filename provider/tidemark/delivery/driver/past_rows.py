"""The rows of a table at the version that sorted a window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.changes.driver.files import require_files_of
from tidemark.changes.driver.past_versions import read_version
from tidemark.errors import SplitUnreadable, VersionVacuumed
from tidemark.lake.delta_log import DeltaLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["rows_as_of"]


def rows_as_of(spark: SparkSession, log: DeltaLog, version: int, *, table: str) -> DataFrame:
    """All rows of the version, even if it is older than the table's retention of removed files, if these still exist.

    Raises SplitUnreadable before a row is read.
    """
    rows = read_version(spark, log.uri, version)
    if version == log.head():
        return rows
    try:
        require_files_of(log, rows, version, version)
    except VersionVacuumed as error:
        gone = {name: error.facts[name] for name in ("count", "first")}
        raise SplitUnreadable(table=table, version=version, **gone) from error
    return rows
