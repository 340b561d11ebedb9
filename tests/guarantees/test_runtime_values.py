"""Dynamic tables over values of run time: refreshed in full when their lag is due, also over bases that stand still."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.control.kept_objects import drifted
from tidemark.failpoints import KILL_AT
from tidemark.materialized.model.definitions import RefreshMode, TargetLag
from tidemark.materialized.model.shapes import KeptShape
from tidemark.materialized.planning.shape import plain_shape
from tidemark.materialized.worker.views import suspend_view, view_history
from tidemark.materialized.worker.waves import plan_named
from tidemark.model.statements import RefreshHow
from tidemark.model.views import ViewQuery
from tidemark.streams.worker.opening import open_table

from .view_world import ViewWorld
from .world import key_of

MINUTE = TargetLag(timedelta(minutes=1))
MOVES = "no base has changed, but current_date may have"


def of_today(query: ViewQuery) -> KeptShape:
    return plain_shape(query, "Change tracking is not supported on …", runtime_value="current_date")


@pytest.fixture
def world(tmp_path: Path, sqlite_store: str) -> Iterator[ViewWorld]:
    """`today` has a run-time value, and `still` has none; both are refreshed, and their base stands still since."""
    made = ViewWorld(tmp_path, sqlite_store)
    made.view("still", "source", mode=RefreshMode.AUTO, lag=MINUTE)
    made.shaped = of_today
    made.view("today", "source", mode=RefreshMode.AUTO, lag=MINUTE)
    made.source.append()
    made.refresh_due("first")
    yield made
    assert drifted(made.store) == []
    made.store.close()


def whys(world: ViewWorld, view: str) -> list[str | None]:
    return [one.why for one in view_history(world.store, view)]


def test_it_is_refreshed_when_its_lag_is_due_and_the_history_says_why(world: ViewWorld) -> None:
    assert world.refresh_due("too early") == ()
    version, jobs = world.stored("today").kept_version, len(world.drivers)
    world.clock.go(timedelta(seconds=61))
    done = {one.view: one for one in world.refresh_due("second")}
    assert (done["still"].state, done["still"].how) == ("unchanged", None)
    assert (done["today"].state, done["today"].how, done["today"].why) == ("done", RefreshHow.WHOLE, MOVES)
    assert len(world.drivers) == jobs + 1
    assert world.stored("today").kept_version == (version or 0) + 1
    assert world.rows("today") == {("0", 1): 1}
    assert world.stored("today").fresh_at == world.stored("still").fresh_at
    assert whys(world, "today")[0] == MOVES


def test_a_changed_base_is_the_reason_if_there_is_one(world: ViewWorld) -> None:
    world.source.append()
    world.clock.go(timedelta(seconds=61))
    world.refresh_due("second")
    assert whys(world, "today")[0] == "Change tracking is not supported on …"


def test_its_readers_see_it_as_of_the_same_point(world: ViewWorld) -> None:
    world.shaped = ViewWorld.shaped
    world.view("reader", "today", mode=RefreshMode.AUTO, lag=MINUTE)
    world.refresh("reader", "made")
    world.clock.go(timedelta(seconds=61))
    done = {one.view: one for one in world.refresh_due("second")}
    assert (done["today"].state, done["reader"].state) == ("done", "done")
    assert world.last("reader").versions == {world.kept["today"].uri: world.stored("today").kept_version}


def test_a_late_wave_does_not_set_the_view_back(world: ViewWorld) -> None:
    """Its tasks wait in a queue, and meanwhile another wave has read more."""
    plan_named(world.store, open_table, str(key_of("late")), ["today"])
    world.source.append()
    world.clock.go(timedelta(seconds=61))
    world.refresh("today", "second")
    assert world.rows("today") == {("0", 1): 1, ("0", 2): 1}
    world.refresh("today", "late")
    assert world.rows("today") == {("0", 1): 1, ("0", 2): 1}
    world.source.append()
    world.refresh("today", "third")
    assert world.rows("today") == {("0", number): 1 for number in (1, 2, 3)}


def test_a_suspended_one_is_left_alone(world: ViewWorld) -> None:
    suspend_view(world.store, "today", by="ann")
    world.clock.go(timedelta(seconds=61))
    assert [one.view for one in world.refresh_due("second")] == ["still"]


@pytest.mark.parametrize("point", ["begin.before", "begin.stored", "submit.stored", "commit.before", "commit.stored"])
def test_a_killed_refresh_is_finished_once_by_its_retry(world: ViewWorld, point: str) -> None:
    version = world.stored("today").kept_version or 0
    child = os.fork()
    if child == 0:
        os.setpgrp()
        os.environ[KILL_AT] = point
        try:
            world.refresh("today", "two")
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    for table in (*world.by_uri.values(), *world.kept.values()):
        table.reload()
    for _ in ("retry", "clear"):
        (done,) = world.refresh("today", "two")
        assert (done.state, done.how) == ("done", RefreshHow.WHOLE)
        assert world.stored("today").kept_version == version + 1
    assert whys(world, "today")[0] != "the first refresh"
    assert world.rows("today") == {("0", 1): 1}
    (more,) = world.refresh("today", "three")
    assert (more.state, world.stored("today").kept_version) == ("done", version + 2)
