"""The Delta tables of the example: the board that changes, its mirror, its history, and the flights that left late."""

from __future__ import annotations

from collections.abc import Sequence

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
LATE_COLUMNS = (*KEY, "dest", "departure_delay")
CHANGE_COLUMNS = (("METADATA$ACTION", "STRING"), ("METADATA$ISUPDATE", "BOOLEAN"), ("METADATA$ROW_ID", "STRING"))


def create_missing_tables(
    spark: SparkSession, *, board: str, mirror: str, history: str, late: str, parallel: str, continuous: str
) -> None:
    """Create missing tables; a second call changes nothing.

    The board has row tracking, which a stream needs, and deletion vectors. The history has the board's columns and the
    three METADATA$ columns, which an append then fills.
    """
    changes = ", ".join(f"`{name}` {kind}" for name, kind in CHANGE_COLUMNS)
    whole = _columns(BOARD_SCHEMA.names)
    _create(spark, board, whole, tracked=True)
    _create(spark, mirror, whole)
    _create(spark, history, f"{whole}, {changes}")
    _create(spark, late, _columns(LATE_COLUMNS))
    _create(spark, parallel, whole)
    _create(spark, continuous, whole)


def _columns(names: Sequence[str]) -> str:
    return ", ".join(f"{name} {BOARD_SCHEMA[name].dataType.simpleString()}" for name in names)


def _create(spark: SparkSession, location: str, columns: str, *, tracked: bool = False) -> None:
    """By SQL, which a Spark Connect server understands without a plugin of Delta's."""
    tracking = ", 'delta.enableRowTracking' = 'true'" if tracked else ""
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS delta.`{location}` ({columns}) USING delta "
        f"TBLPROPERTIES ('delta.enableDeletionVectors' = 'true'{tracking})"
    )
