"""The three Delta tables of the example: the board that changes, its mirror, and the history of its changes."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.types import DateType, IntegerType, StringType, StructField, StructType, TimestampType

__all__ = ["BOARD_SCHEMA", "KEY", "create_missing_tables"]

KEY = ("service_date", "carrier", "flight", "origin")

BOARD_SCHEMA = StructType(
    [
        StructField("service_date", DateType()),
        StructField("carrier", StringType()),
        StructField("flight", IntegerType()),
        StructField("origin", StringType()),
        StructField("dest", StringType()),
        StructField("tailnum", StringType()),
        StructField("distance", IntegerType()),
        StructField("scheduled_departure", TimestampType()),
        StructField("status", StringType()),
        StructField("departure_delay", IntegerType()),
        StructField("arrival_delay", IntegerType()),
        StructField("changed_at", TimestampType()),
    ]
)
CHANGE_COLUMNS = (("METADATA$ACTION", "STRING"), ("METADATA$ISUPDATE", "BOOLEAN"), ("METADATA$ROW_ID", "STRING"))


def create_missing_tables(spark: SparkSession, *, board: str, mirror: str, history: str) -> None:
    """Create what is not there yet; a second call changes nothing.

    The board has row tracking, which a stream needs, and deletion vectors. The history has the board's columns and the
    three METADATA$ columns, which an append then fills.
    """
    from delta.tables import DeltaTable

    for location, tracked, with_changes in ((board, True, False), (mirror, False, False), (history, False, True)):
        table = DeltaTable.createIfNotExists(spark).location(location).addColumns(BOARD_SCHEMA)
        for name, kind in CHANGE_COLUMNS if with_changes else ():
            table = table.addColumn(name, kind)
        if tracked:
            table = table.property("delta.enableRowTracking", "true")
        table.property("delta.enableDeletionVectors", "true").execute()
