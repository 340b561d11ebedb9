"""Reading a change stream's log: flat rows, data change records, and the rows of READ_<stream> (partitions.md 1.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidemark.engine.change_streams.log_rows import LogRows
from tidemark.engine.change_streams.records import assembled, record_columns
from tidemark.model.change_streams import Position

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["read_mods", "read_records"]


def read_mods(
    spark: SparkSession,
    log_path: str,
    token: str,
    start: Position,
    end: Position,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The log's rows of the modifications in [start, end) of a token: LOG_COLUMNS, in no order. Lazy.

    The log is read as it is now, whenever that is evaluated. Raises TableNotFound.
    """
    return LogRows.pinned(spark, log_path, options).data(token, start, end)


def read_records(
    spark: SparkSession,
    log_path: str,
    token: str,
    start: Position,
    end: Position,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The data change records in [start, end) of a token, one row each: RECORD_COLUMNS, sorted by position. Lazy.

    The log is read as it is now, whenever that is evaluated. Both bounds are such that no record is cut: the places of
    records. Raises TableNotFound.
    """
    rows = read_mods(spark, log_path, token, start, end, options)
    return assembled(rows).sort("commit_timestamp", "record_sequence").select(*record_columns())
