"""A target that is gone, another, restored, or left by a replication that was dropped: a backfill mends it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.engine.replication.event_histories import STORE
from tests.engine.replication.replicated_world import ReplicatedWorld
from tests.postgresql import PostgresServer
from tidemark.errors import ReplicationRefused, TargetLost, TargetNotDelta
from tidemark.model.streams import TableRef
from tidemark.replication.driver.apply import apply_events
from tidemark.replication.model.jobs import BackfillObject
from tidemark.replication.model.replication import WriteMode

pytestmark = pytest.mark.spark

TABLE = ("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'a'), (2, 'b')")


@pytest.fixture
def world(spark: SparkSession, source_server: PostgresServer, tmp_path: Path) -> Iterator[ReplicatedWorld]:
    made = ReplicatedWorld(spark, source_server, tmp_path, TABLE)
    try:
        made.backfill()
        yield made
    finally:
        made.close()


def backfill_of(world: ReplicatedWorld, target: TableRef) -> BackfillObject:
    """The next one, as a store asks for it that knows `target`."""
    request = world.backfill_ask()
    return replace(request, object=replace(request.object, target=target))


def of_another(world: ReplicatedWorld, mode: WriteMode, *earlier: str) -> BackfillObject:
    """The first one of an object of another replication."""
    request = world.backfill_ask(catch_up=None, number=1, stream="shop again", earlier=earlier)
    target = replace(request.object.target, table_id="")
    return replace(request, object=replace(request.object, uid="later", mode=mode, target=target))


def apply_events_to(world: ReplicatedWorld, target: TableRef) -> None:
    apply_events(world.spark, STORE, replace(world.apply_ask(world.capture()), target=target))


def test_a_target_that_is_gone_is_made_anew_by_a_backfill(world: ReplicatedWorld) -> None:
    known = world.target
    shutil.rmtree(world.home / "target")
    world.source.sql("UPDATE t SET v = 'c' WHERE id = 1")
    with pytest.raises(TargetLost, match=r"no longer exists\. Nothing was written\. Request a backfill"):
        apply_events_to(world, known)
    assert not (world.home / "target").exists()
    request = backfill_of(world, known)
    report = world.backfill(request)
    assert (report.rows, report.target.table_id) == (2, world.target.table_id)
    assert world.target.table_id != known.table_id
    assert world.rows() == [(1, "c"), (2, "b")]
    assert world.backfill(request) == replace(report, found=True, seen=None)
    world.source.sql("DELETE FROM t WHERE id = 2")
    assert world.apply().rows["deleted"] == 1


def test_a_target_that_was_made_anew_is_taken_as_new_but_not_with_rows_of_others(world: ReplicatedWorld) -> None:
    known, place = world.target, str(world.home / "target")
    shutil.rmtree(place)
    world.spark.range(3).write.format("delta").save(place)
    with pytest.raises(TargetLost, match=f"is another table now: it had the id {known.table_id}"):
        apply_events_to(world, known)
    with pytest.raises(ReplicationRefused, match=r"Replication shop: its target .* rows that are not of this object"):
        world.backfill(backfill_of(world, known))
    assert world.rows("id") == [(0,), (1,), (2,)]
    world.spark.sql(f"DELETE FROM delta.`{place}`")
    world.backfill(backfill_of(world, known))
    assert world.rows() == [(1, "a"), (2, "b")]


def test_a_target_that_was_restored_is_mended_by_a_backfill(world: ReplicatedWorld) -> None:
    world.source.sql("UPDATE t SET v = 'c' WHERE id = 1")
    world.apply()
    world.spark.sql(f"RESTORE TABLE delta.`{world.home}/target` TO VERSION AS OF 1")
    with pytest.raises(TargetLost, match="was restored or replaced after write 2 of its object"):
        apply_events_to(world, world.target)
    world.backfill()
    assert world.rows() == world.source_rows()
    world.source.sql("UPDATE t SET v = 'd' WHERE id = 1")
    world.apply()
    assert world.rows() == world.source_rows()


def test_a_place_with_files_of_others_is_no_target(world: ReplicatedWorld) -> None:
    known, place = world.target, world.home / "target"
    shutil.rmtree(place / "_delta_log")
    with pytest.raises(TargetNotDelta):
        world.backfill(backfill_of(world, known))
    assert list(place.glob("*.parquet"))


@pytest.mark.parametrize("mode", list(WriteMode))
def test_a_target_that_a_dropped_replication_left_is_overwritten(world: ReplicatedWorld, mode: WriteMode) -> None:
    world.source.sql("DELETE FROM t WHERE id = 2")
    for earlier in ((), ("another",)):  # its object is live
        with pytest.raises(ReplicationRefused, match="Replication shop again: its target"):
            world.backfill(of_another(world, mode, *earlier))
    assert world.rows() == [(1, "a"), (2, "b")]
    request = of_another(world, mode, "o", "another")
    report = world.backfill(request)
    assert (report.rows, world.rows()) == (1, [(1, "a")])
    assert report.applied == report.snapshot
    assert ("change_type" in world.spark.read.format("delta").load(str(world.home / "target")).columns) is (
        mode is WriteMode.APPEND_ONLY
    )
    assert world.backfill(request) == replace(report, found=True, seen=None)
    with pytest.raises(ReplicationRefused):  # now it is of both
        world.backfill(replace(request, object=replace(request.object, uid="third"), earlier=("o",)))
