"""Answers to statements about streams, as DataFrames with the columns of the source system (R125, R130, R131)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tidemark.client.descriptions import StreamDescription
from tidemark.streams.planning.stream_sql.listing import name_parts
from tidemark.streams.worker.backlog import WaitingVersion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tidemark.delivery.model.transactions import CommitResult

__all__ = ["backlog_answer", "rows_answer", "show_answer", "status_answer", "terse_answer"]

SHOWN = (
    "created_on TIMESTAMP, name STRING, database_name STRING, schema_name STRING, owner STRING, comment STRING,"
    " table_name STRING, source_type STRING, base_tables STRING, type STRING, stale BOOLEAN, mode STRING,"
    " stale_after TIMESTAMP, invalid_reason STRING, owner_role_type STRING"
)
TERSE = "created_on TIMESTAMP, name STRING, kind STRING, database_name STRING, schema_name STRING, tableOn STRING"
BACKLOG = "table_name STRING, version BIGINT, timestamp TIMESTAMP, change_records BIGINT, operation STRING"
CHANGED = ("inserted", "updated", "deleted")


def status_answer(spark: SparkSession, status: str, notices: Sequence[str] = ()) -> DataFrame:
    """One row: status."""
    return spark.createDataFrame([(" ".join((status, *notices)),)], "status STRING")


def show_answer(spark: SparkSession, streams: Iterable[StreamDescription]) -> DataFrame:
    """The columns of SHOW and DESCRIBE; base_tables are names with commas between them."""
    return spark.createDataFrame([_shown(stream) for stream in streams], SHOWN)


def terse_answer(spark: SparkSession, streams: Iterable[StreamDescription]) -> DataFrame:
    """The columns of SHOW TERSE: kind is the type, tableOn the table_name."""
    rows = []
    for stream in streams:
        _, _, name = name_parts(stream.name)
        row = (stream.created_on, name, stream.type, stream.database_name, stream.schema_name, stream.table_name)
        rows.append(row)
    return spark.createDataFrame(rows, TERSE)


def backlog_answer(spark: SparkSession, waiting: Iterable[WaitingVersion]) -> DataFrame:
    """The columns of `WaitingVersion`."""
    rows = [(one.table, one.version, one.timestamp, one.change_records, one.operation) for one in waiting]
    return spark.createDataFrame(rows, BACKLOG)


def rows_answer(spark: SparkSession, result: CommitResult | None) -> DataFrame:
    """One row: how many rows were inserted, updated and deleted."""
    evidence = result.evidence if result is not None else ()
    counts = tuple(sum(one.rows.get(kind, 0) for one in evidence) for kind in CHANGED)
    columns = ", ".join(f"`number of rows {kind}` BIGINT" for kind in CHANGED)
    return spark.createDataFrame([counts], columns)


def _shown(stream: StreamDescription) -> tuple[object, ...]:
    _, _, name = name_parts(stream.name)
    return (
        stream.created_on,
        name,
        stream.database_name,
        stream.schema_name,
        stream.owner,
        stream.comment,
        stream.table_name,
        stream.source_type,
        ", ".join(stream.base_tables),
        stream.type,
        stream.stale,
        stream.mode,
        stream.stale_after,
        stream.invalid_reason,
        stream.owner_role_type,
    )
