"""The Spark job that lets time pass on the board: each hour that changes anything is one commit."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from flights.replay_plan import BoardChange, Status, changes_by_hour, hours_to_replay, moment, scheduled_within
from flights.tables import BOARD_SCHEMA, KEY
from flights.year import flights_between

__all__ = ["Replayed", "replay"]

_ONCE = {"spark.databricks.delta.write.txnAppId": "flights-replay"}  # its version is the hour: Delta skips a second one
_MARK = "spark.databricks.delta.commitInfo.userMetadata"
OFF_BOARD = "cancelled"
PROGRESS_EVERY = 5.0  # seconds


@dataclass(frozen=True)
class Replayed:
    """The result of a run of the replay; `hours` counts those that changed the board. Times are ISO 8601, UTC."""

    since: str | None
    until: str | None
    hours: int
    changes: int
    cancelled: int


def replay(spark: SparkSession, board: str, days: float) -> Replayed:
    """Replay the next `days` days on the table at `board`, then compact it, which no stream notices.

    Each hour is one commit under a Delta transaction numbered by the hour. The run after a
    dead one continues at the first missing hour, and Delta skips an existing hour. So no flight appears twice.
    """
    hours = hours_to_replay(_last_hour(spark, board), days)
    changes = changes_by_hour(flights_between(*scheduled_within(hours)), hours) if hours else {}
    if not changes:
        return Replayed(since=None, until=None, hours=0, changes=0, cancelled=0)
    said = time.monotonic()
    for done, (hour, on_board) in enumerate(changes.items(), start=1):
        _write_hour(spark, board, hour, on_board)
        if time.monotonic() - said > PROGRESS_EVERY or done == len(changes):
            said = time.monotonic()
            _say(f"{moment(hour):%Y-%m-%d %H:%M} UTC: hour {done} of {len(changes)}, {len(on_board)} flights changed")
    spark.sql(f"OPTIMIZE delta.`{board}`")
    everything = [change for on_board in changes.values() for change in on_board]
    return Replayed(
        since=moment(min(changes)).isoformat(),
        until=moment(max(changes) + 1).isoformat(),
        hours=len(changes),
        changes=len(everything),
        cancelled=sum(change.status is None for change in everything),
    )


def _last_hour(spark: SparkSession, board: str) -> int | None:
    """The last hour that the table has, by the mark in its history."""
    hours = spark.sql(f"DESCRIBE HISTORY delta.`{board}`").select(F.col("userMetadata").try_cast("long").alias("hour"))
    found = hours.agg(F.max("hour")).first()
    return None if found is None else found[0]


def _write_hour(spark: SparkSession, board: str, hour: int, changes: Sequence[BoardChange]) -> None:
    _as_rows(spark, hour, changes).createOrReplaceTempView("news")
    dates = [change.flight.service_date for change in changes]
    match = " AND ".join(f"board.{column} <=> news.{column}" for column in KEY)
    settings = {**_ONCE, "spark.databricks.delta.write.txnVersion": str(hour), _MARK: str(hour)}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        spark.sql(  # the dates skip the files of other days
            f"""
            MERGE INTO delta.`{board}` AS board USING news
            ON board.service_date BETWEEN DATE'{min(dates)}' AND DATE'{max(dates)}' AND {match}
            WHEN MATCHED AND news.status = '{OFF_BOARD}' THEN DELETE
            WHEN MATCHED THEN UPDATE SET *
            WHEN NOT MATCHED AND news.status <> '{OFF_BOARD}' THEN INSERT *
            """
        )
    finally:
        for name in settings:
            spark.conf.unset(name)


def _as_rows(spark: SparkSession, hour: int, changes: Sequence[BoardChange]) -> DataFrame:
    """One row for each flight with the columns of the board, as of the end of the hour.

    An Arrow table lets Spark plan with the rows themselves. A scan would have to be materialized first.
    """
    schema = to_arrow_schema(BOARD_SCHEMA, timezone="UTC")
    rows = [dict(zip(schema.names, _row(hour, change), strict=True)) for change in changes]
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=schema), BOARD_SCHEMA)


def _row(hour: int, change: BoardChange) -> tuple[object, ...]:
    flight, status = change.flight, change.status
    left = status in (Status.DEPARTED, Status.LANDED)
    return (
        flight.service_date,
        flight.carrier,
        flight.number,
        flight.origin,
        flight.dest,
        flight.tailnum,
        flight.distance,
        flight.scheduled_departure,
        OFF_BOARD if status is None else status.value,
        flight.departure_delay if left else None,
        flight.arrival_delay if status is Status.LANDED else None,
        moment(hour) + timedelta(hours=1),
    )


def _say(line: str) -> None:
    sys.stdout.write(f"tidemark: {line}\n")  # the mark of a line for the task log
    sys.stdout.flush()
