"""The Spark job that compares the mirror with its source, and summarizes the day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from flights.tables import BOARD_SCHEMA

__all__ = ["Report", "report"]

SIGN = "sign"
LATE = 15  # minutes: what counts as late in the trade


@dataclass(frozen=True)
class Report:
    """The result. Differences are in rows, delays in minutes; `carriers` and `worst` have JSON's types.

    `mirror_differs`: rows that only one of the mirror and the source as of `version` has. `history_differs`: the same
    for the source and the sum of the history, in which an INSERT counts +1 and a DELETE −1. It is 0 only if every
    change is in the history exactly once.
    """

    version: int
    flights: int
    landed: int
    mirror_differs: int
    history_rows: int
    history_differs: int
    carriers: list[dict[str, Any]]
    worst: dict[str, Any] | None


def report(spark: SparkSession, *, board: str, mirror: str, history: str, version: int) -> Report:
    """Compare with the source as of `version`, which is the stream's offset: the source itself may have moved on."""
    source = spark.read.format("delta").option("versionAsOf", version).load(board).select(*BOARD_SCHEMA.names)
    copy = spark.read.format("delta").load(mirror).select(*BOARD_SCHEMA.names)
    changes = spark.read.format("delta").load(history)
    action = F.when(F.col("METADATA$ACTION") == "INSERT", 1).otherwise(-1)
    landed = F.col("status") == "landed"
    flights, arrived = copy.agg(F.count("*"), F.count_if(landed)).first() or (0, 0)
    return Report(
        version=version,
        flights=flights,
        landed=arrived,
        mirror_differs=_differences(_signed(source, F.lit(1)), _signed(copy, F.lit(1))),
        history_rows=changes.count(),
        history_differs=_differences(_signed(source, F.lit(1)), _signed(changes, action)),
        carriers=[row.asDict() for row in copy.where(landed).transform(_by_carrier).collect()],
        worst=next((row.asDict() for row in copy.where(landed).transform(_worst).collect()), None),
    )


def _differences(one: DataFrame, other: DataFrame) -> int:
    """Rows by which the multisets differ, each given with its SIGN column."""
    both = one.unionByName(other.withColumn(SIGN, -F.col(SIGN)))
    left = both.groupBy(*BOARD_SCHEMA.names).agg(F.sum(SIGN).alias("times"))  # NULL groups with NULL
    found = left.agg(F.sum(F.abs("times"))).first()
    return int(found[0] or 0) if found else 0


def _signed(rows: DataFrame, sign: Column) -> DataFrame:
    return rows.select(*BOARD_SCHEMA.names, sign.alias(SIGN))


def _by_carrier(landed: DataFrame) -> DataFrame:
    delay = F.col("arrival_delay")
    measures = landed.groupBy("carrier").agg(
        F.count("*").alias("landed"),
        F.round(F.mean(delay), 1).alias("mean_delay"),
        F.round(100 * F.mean((delay > LATE).cast("int")), 0).cast("int").alias("late_percent"),
        F.max(delay).alias("worst_delay"),
    )
    return measures.orderBy(F.desc("landed"), "carrier")


def _worst(landed: DataFrame) -> DataFrame:
    name = F.concat_ws(" ", "carrier", "flight").alias("flight")
    columns = (name, F.col("service_date").cast("string"), "origin", "dest", "arrival_delay")
    return landed.orderBy(F.desc("arrival_delay"), "scheduled_departure", "carrier", "flight").select(*columns).limit(1)
