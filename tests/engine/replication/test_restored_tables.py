"""What was restored from a backup, or lost its old commits, is told from what it was: no event is lost by it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.databases.postgresql.event_log import EVENT_COLUMNS, EVENT_DDL
from tests.engine.replication.event_histories import STORE, SourceTable, apply_events_of, column, schema_of
from tidemark.errors import EventLogChanged, TargetLost, TargetMovedOn
from tidemark.lake.event_logs import EventBatch, capture_app_id
from tidemark.model.streams import TableRef
from tidemark.replication.driver.apply import apply_events
from tidemark.replication.driver.target_table import Target
from tidemark.replication.model.jobs import ApplyEvents
from tidemark.replication.model.marks import ObjectMark, ObjectWrite
from tidemark.replication.model.replication import START, LogPosition, TypeKind

pytestmark = pytest.mark.spark

SCHEMA = schema_of(column("id", TypeKind.INTEGER, key=True), column("v"))


class Shop:
    """A table of a source, its event log in batches as capture writes it, and its target."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        self.spark, self.log, self.target = spark, home / "log", home / "t"
        self.table, self.batches, self._told = SourceTable(SCHEMA), 0, 0

    def insert(self, key: int) -> LogPosition:
        """And what is behind it."""
        self.table.insert(id=str(key), v="x")
        return self.table.now

    def capture(self) -> None:
        """One batch with all that is new."""
        self.batches += 1
        new = [{**one, "batch": self.batches} for one in self.table.events[self._told :]]
        self._told = len(self.table.events)
        batch = EventBatch("r", self.batches, "", self.table.now.commit, "attempt", 1)
        rows = [tuple(event.get(name) for name in EVENT_COLUMNS) for event in new]
        writer = self.spark.createDataFrame(rows, EVENT_DDL).write.format("delta").mode("append")
        writer = writer.option("txnAppId", capture_app_id(STORE, "r")).option("txnVersion", self.batches)
        writer.partitionBy("object").option("userMetadata", batch.to_text()).save(str(self.log))

    def request(self, number: int, start: LogPosition, end: LogPosition) -> ApplyEvents:
        return apply_events_of(
            self.table,
            target=self.target,
            event_log=self.log,
            schema=SCHEMA,
            number=number,
            start=start,
            end=end,
            batches=self.batches,
        )

    def run(self, request: ApplyEvents) -> None:
        apply_events(self.spark, STORE, request)

    def ids(self) -> list[int]:
        return sorted(row.id for row in self.spark.read.format("delta").load(str(self.target)).select("id").collect())


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Shop:
    return Shop(spark, tmp_path)


def test_a_number_that_another_range_was_written_under_is_not_taken_for_written(shop: Shop) -> None:
    first, last = shop.insert(1), shop.insert(2)
    shop.capture()
    shop.run(shop.request(1, START, first))
    with pytest.raises(TargetLost, match="another write"):  # a store from a backup draws 1 again
        shop.run(shop.request(1, START, last))
    with pytest.raises(TargetLost, match="another write"):
        shop.run(shop.request(1, first, last))
    target = Target(TableRef("lake.orders", str(shop.target), ""), STORE, "o")
    copy = ObjectMark("o", 1, 0, START, START, ObjectWrite.BACKFILL)
    with pytest.raises(TargetLost, match="another write"):
        target.has(copy)
    assert not target.has(replace(copy, number=2))
    shop.run(shop.request(1, START, first))
    assert shop.ids() == [1]


def test_a_number_whose_range_had_more_segments_is_another_too(shop: Shop) -> None:
    first = shop.insert(1)
    shop.table.truncate()
    last = shop.insert(2)
    shop.capture()
    shop.run(shop.request(1, START, last))
    with pytest.raises(TargetLost, match="another write"):
        shop.run(shop.request(1, START, first))
    assert shop.ids() == [2]


def test_of_an_event_log_that_lost_batches_nothing_is_applied(shop: Shop) -> None:
    first = shop.insert(1)
    shop.capture()
    shop.run(shop.request(1, START, first))
    last = shop.insert(2)
    shop.capture()
    request = shop.request(2, first, last)
    shop.spark.sql(f"RESTORE TABLE delta.`{shop.log}` TO VERSION AS OF 0")
    with pytest.raises(EventLogChanged, match="Restore it to version 1"):
        shop.run(request)
    with pytest.raises(EventLogChanged, match="up to 2 only, of 3"):
        shop.run(replace(request, batches=3))
    with pytest.raises(EventLogChanged, match="is gone, with 2 batches"):
        shop.run(replace(request, event_log=f"{shop.log}-elsewhere"))
    shop.spark.sql(f"RESTORE TABLE delta.`{shop.log}` TO VERSION AS OF 1")
    shop.run(request)
    assert shop.ids() == [1, 2]


def test_a_target_whose_commits_were_cleaned_up_is_still_the_objects(shop: Shop) -> None:
    first, second = shop.insert(1), shop.insert(2)
    third = shop.insert(3)
    shop.capture()
    shop.run(shop.request(1, START, first))
    shop.run(shop.request(2, first, second))
    _forget_commits(shop)
    with pytest.raises(TargetMovedOn):
        shop.run(shop.request(1, START, first))
    with pytest.raises(TargetLost, match="another write"):
        shop.run(shop.request(2, first, second))
    shop.run(shop.request(3, second, third))
    assert shop.ids() == [1, 2, 3]


def test_a_target_that_was_restored_and_cleaned_up_is_told(shop: Shop) -> None:
    first, second = shop.insert(1), shop.insert(2)
    shop.capture()
    shop.run(shop.request(1, START, first))
    _forget_commits(shop)
    shop.spark.sql(f"INSERT INTO delta.`{shop.target}` (id) VALUES (9)")
    shop.spark.sql(f"RESTORE TABLE delta.`{shop.target}` TO VERSION AS OF {len(list(_commits(shop))) - 1}")
    with pytest.raises(TargetLost, match="was restored"):
        shop.run(shop.request(2, first, second))


def _commits(shop: Shop) -> list[Path]:
    return sorted((shop.target / "_delta_log").glob("*.json"))


def _forget_commits(shop: Shop) -> None:
    """A checkpoint, as every tenth commit makes one, a commit behind it, and then log clean-up."""
    shop.spark.sql(f"ALTER TABLE delta.`{shop.target}` SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    shop.spark.sql(f"ALTER TABLE delta.`{shop.target}` SET TBLPROPERTIES ('delta.checkpointInterval' = '10')")
    checkpoint = max((shop.target / "_delta_log").glob("*.checkpoint.parquet"))
    for commit in _commits(shop):
        if commit.name[:20] < checkpoint.name[:20]:
            commit.unlink()
    for checksum in (shop.target / "_delta_log").glob(".*.json.crc"):
        checksum.unlink()
