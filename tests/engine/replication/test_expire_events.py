"""Events that are old and that every target has leave the event log; no other ever does."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.engine.replication.capturing import NOW
from tests.engine.replication.event_histories import STORE
from tests.engine.replication.replicated_world import ReplicatedWorld
from tests.postgresql import PostgresServer
from tidemark.errors import EventLogChanged
from tidemark.replication.driver.expire import expire_events, is_needed
from tidemark.replication.model.jobs import ExpireEvents, ExpireReport
from tidemark.replication.model.replication import START, LogPosition

pytestmark = pytest.mark.spark

LATER = NOW + timedelta(days=8)


@pytest.fixture
def world(spark: SparkSession, source_server: PostgresServer, tmp_path: Path) -> Iterator[ReplicatedWorld]:
    """A table of three rows, backfilled, and three batches of a change each, of which the target has the first."""
    made = ("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    world = ReplicatedWorld(spark, source_server, tmp_path, made)
    world.backfill()
    world.source.sql("UPDATE t SET v = 'A' WHERE id = 1")
    world.apply()
    for number in (2, 3):
        world.source.sql(f"UPDATE t SET v = 'B{number}' WHERE id = {number}")
        world.capture()
    yield world
    world.close()


def expire(
    world: ReplicatedWorld, *, before: datetime = LATER, needed: Mapping[str, LogPosition] | None = None
) -> ExpireReport:
    """With what a store would know."""
    capturing = world.capturing.request
    request = ExpireEvents(
        replication_uid=capturing.replication_uid,
        stream="shop",
        event_log=capturing.event_log,
        batches=capturing.batches,
        before=before,
        needed={world.oid: world.applied or START} if needed is None else needed,
    )
    return expire_events(world.spark, STORE, request)


def batches_with_events(world: ReplicatedWorld) -> list[int]:
    rows = world.capturing.rows.where("change <> 'SCHEMA'").select("batch").distinct().collect()
    return sorted(row["batch"] for row in rows)


def test_what_the_target_has_goes_and_the_rest_is_applied_as_if_nothing_had_gone(world: ReplicatedWorld) -> None:
    report = expire(world)
    assert (report.events > 0, report.held) == (True, {world.oid: 1})
    assert batches_with_events(world) == [2, 3]
    world.source.sql("DELETE FROM t WHERE id = 1")
    world.apply()
    assert world.rows("id", "v") == [(2, "B2"), (3, "B3")]
    assert expire(world).events == 2
    assert expire(world) == ExpireReport(0)


def test_what_is_young_stays(world: ReplicatedWorld) -> None:
    version = world.capturing.log.head()
    assert expire(world, before=NOW) == ExpireReport(0)
    assert world.capturing.log.head() == version


def test_all_of_an_object_under_a_backfill_stays_and_so_does_the_newest_batch(world: ReplicatedWorld) -> None:
    assert expire(world, needed={world.oid: START}).events == 0
    assert expire(world, needed={}).events > 0
    assert batches_with_events(world) == [3]


def test_a_capture_and_a_backfill_after_it_find_all_as_it_was(world: ReplicatedWorld) -> None:
    world.apply()
    expire(world)
    assert world.backfill().rows == 3
    world.source.sql("INSERT INTO t VALUES (4, 'd')")
    world.apply()
    assert world.rows("id", "v") == [(1, "A"), (2, "B2"), (3, "B3"), (4, "d")]


def test_an_event_log_that_is_gone_is_not_taken_for_an_empty_one(world: ReplicatedWorld) -> None:
    shutil.rmtree(world.home / "events")
    with pytest.raises(EventLogChanged):
        expire(world)


def test_an_event_is_needed_from_the_place_that_is_named_on(spark: SparkSession) -> None:
    rows = [("a", "1", 5), ("a", "2", 1), ("a", "2", 2), ("a", "3", 1), ("b", "0", 1), ("c", "9", 1), (None, "9", 1)]
    events = spark.createDataFrame(rows, "object_id string, position string, sequence bigint")
    needed = {"a": replace(LogPosition("2"), sequence=2), "b": START}
    found = events.where(is_needed(needed)).collect()
    assert [tuple(row) for row in found] == [("a", "2", 2), ("a", "3", 1), ("b", "0", 1)]
    assert events.where(F.lit(True) & is_needed({})).isEmpty()
