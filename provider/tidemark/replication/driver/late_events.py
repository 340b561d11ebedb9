"""Events that come late, or twice: Datastream writes each at least once, and in no order.

An event of a row counts unless the log has a newer one of the same key. Newer is what is behind it in the log of the
source, which the sort keys of both say. An event with the identity of another is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from tidemark.replication.driver.event_log import OBJECT_COLUMN
from tidemark.replication.planning.events import Change

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from tidemark.lake.delta_log import DeltaLog

__all__ = ["without_overtaken"]

_ORDER, _STEP = -4, -3  # places in `sort_keys`, counted from the end (`driver/log_forms.py`)


def without_overtaken(session: SparkSession, log: DeltaLog, events: DataFrame) -> DataFrame:
    """The events of a batch that still count after those of the log. Events that change no row stay."""
    of_rows = F.col("change") != Change.SCHEMA.value
    objects = [row[OBJECT_COLUMN] for row in events.select(OBJECT_COLUMN).distinct().collect()]
    known = session.read.format("delta").load(log.uri).where(F.col(OBJECT_COLUMN).isin(objects) & of_rows)
    same = known.select(F.col("uuid").alias("known_uuid")).distinct()
    newest = known.where(F.col("key").isNotNull()).groupBy("object_id", "key").agg(F.max(_place()).alias("newest"))
    left = events.join(same, events["uuid"] == same["known_uuid"], "left_anti")
    newest = newest.select(F.col("object_id").alias("of_object"), F.col("key").alias("of_key"), "newest")
    joined = left.join(newest, (left["object_id"] == newest["of_object"]) & (left["key"] == newest["of_key"]), "left")
    overtaken = F.coalesce(F.col("newest") > _place(), F.lit(False)) & of_rows
    return joined.where(~overtaken).drop("of_object", "of_key", "newest")


def _place() -> Column:
    """The place of an event in the log of its source."""
    order, step = F.element_at("sort_keys", _ORDER), F.element_at("sort_keys", _STEP)
    return F.struct(order.alias("order"), step.cast("bigint").alias("step"))
