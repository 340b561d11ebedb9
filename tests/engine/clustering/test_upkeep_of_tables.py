"""Upkeep by itself: depth is kept within a budget, streams see none of it, and neither kills nor others cost a row."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress

import pytest
from delta.exceptions import DeltaConcurrentModificationException
from pyspark.sql import Row

from tests.engine.clustering.world import World
from tidemark.clustering.model.tables import Goal, How, Reclustered, ReclusterState
from tidemark.clustering.worker.upkeep import keep_clustered, tables_to_keep
from tidemark.model.statements import TransactionKey

pytestmark = pytest.mark.spark


class Died(BaseException):
    """The end of a process at a failpoint."""


def keep(world: World, run: str = "1") -> Reclustered:
    """A run of the DAG for the table."""
    context = world.lake._context
    (done,) = keep_clustered(context.runtime, tables_to_keep(context.store), key=TransactionKey("dag", run, "task"))
    return done


def depth(world: World) -> float:
    found: float = world.lake.clustering_information("db.events")["average_depth"]
    return found


def changes(world: World) -> Sequence[Row]:
    return world.lake.stream("s").collect()


@pytest.mark.quick
def test_the_depth_is_kept_and_streams_see_the_appends_alone(world: World) -> None:
    world.lake.cluster_by("db.events", ["k"], goal=Goal(depth=2))
    world.lake.create_stream("s", "db.events")
    first = keep(world, "empty")
    assert (first.how, first.why) == (How.NOTHING, "depth 0 is within 2")
    done = []
    for step in range(4):
        world.append(rows=500)
        done.append(keep(world, str(step)))
        assert depth(world) <= 2
        assert len(changes(world)) == 500 * (step + 1)
    assert [one.how for one in done] == [How.NOTHING, How.NOTHING, How.FULL, How.NOTHING]
    assert done[1].why == "depth of at most 2 is within 2"
    assert (done[2].depth_before, done[2].depth_after, done[2].version) == (3.0, 1.0, world.log.head() - 1)
    world.lake.advance_stream("s")
    world.append(rows=500)
    rewriting = keep(world, "last")
    assert (rewriting.how, rewriting.depth_before, rewriting.depth_after) == (How.CUBES, 3.0, 2.0)
    assert {row["METADATA$ACTION"] for row in changes(world)} == {"INSERT"}
    assert len(changes(world)) == 500
    world.lake.advance_stream("s")
    world.lake.recluster("db.events")
    assert not world.lake.has_data("s")


def test_a_suspended_table_and_a_spent_budget_are_left_alone_with_the_reason(world: World) -> None:
    world.append(3, rows=500)
    size = sum(file.size for file in world.files)
    kept = world.lake.cluster_by("db.events", ["k"], goal=Goal(depth=1, day_bytes=size + size // 5))
    world.lake.suspend_recluster("db.events")
    assert keep(world, "1").why == f"suspended: {world.lake.clustered_tables()[0].suspended}"
    world.lake.resume_recluster("db.events")
    done = keep(world, "2")
    assert (done.how, done.depth_after) == (How.FULL, 1.0)
    world.append(3, rows=500)
    left = keep(world, "3")
    assert left.how is How.NOTHING
    assert "and the budget has" in left.why
    assert [(one.name, one.state) for one in world.lake.show_objects()] == [(kept.name, "deep")]
    world.late = world.late.__class__(days=2)
    later = keep(world, "4")  # the new files alone fit
    assert (later.how, later.depth_after) == (How.CUBES, 2.0)


@pytest.mark.parametrize("point", ["recluster.planned", "recluster.committed", "recluster.kept"])
def test_a_killed_run_is_continued_and_rewrites_once(world: World, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(reached: str) -> None:
        if reached == point:
            raise Died

    world.append(3, rows=500)
    world.lake.cluster_by("db.events", ["k"], goal=Goal(depth=1))
    keys = world.keys()
    with monkeypatch.context() as killed:
        killed.setattr("tidemark.clustering.driver.job_recluster.failpoint", die)
        killed.setattr("tidemark.clustering.worker.recluster.failpoint", die)
        with pytest.raises(Died):
            keep(world, "1")
    done = keep(world, "1")
    assert (done.state, done.how, done.depth_before, done.depth_after) == (ReclusterState.DONE, How.FULL, 3.0, 1.0)
    again = keep(world, "1")
    assert (again.version, again.bytes) == (done.version, done.bytes)
    (row,) = world.ledger()
    assert (row.state, row.bytes, row.version) == ("done", sum(file.size for file in world.files), done.version)
    assert [commit.operation for commit in world.log.commits(3, world.log.head())].count("OPTIMIZE") == 1
    assert world.keys() == keys


def test_writers_go_on_and_a_conflict_loses_nothing(world: World) -> None:
    world.append(4, rows=4_000)
    world.lake.cluster_by("db.events", ["k"], goal=Goal(depth=1))
    expected = set(range(4_000))
    stop = threading.Event()

    def delete() -> None:
        for key in range(4_000):
            if stop.is_set():
                return
            with suppress(DeltaConcurrentModificationException):
                world.run(f"DELETE FROM {{t}} WHERE k = {key}")
                expected.discard(key)

    other = threading.Thread(target=delete)
    other.start()
    try:
        done = keep(world, "1")
    finally:
        stop.set()
        other.join()
    assert sorted(set(world.keys())) == sorted(expected)
    assert len(world.keys()) == 4 * len(expected)
    if done.state is ReclusterState.LEFT:
        assert "other writers were first, and the next run tries again" in done.why
        (shown,) = world.lake.clustering_information("db.events")["clustering_errors"]
        assert "other writers were first" in shown["error"]
    last = keep(world, "2")
    assert (last.state, depth(world)) in ((ReclusterState.DONE, 1.0), (None, 1.0))
    assert len(world.keys()) == 4 * len(expected)
