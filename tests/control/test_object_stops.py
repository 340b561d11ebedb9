"""The overview has the reason for which a person has stopped an object, as long as that stop holds. No log is read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from tests.control.change_stream_model import ChangeStreamWorld, Clock, segment
from tests.control.replication_model import ME, World, at
from tidemark.change_streams.worker.groups import create_group, pause_group, resume_group
from tidemark.change_streams.worker.waves import begin_chunks, chunk_failed, plan_wave
from tidemark.control.object_acts import Act, ActTools, act_on, offered_now
from tidemark.control.object_list import ObjectsWish, find
from tidemark.control.store import ControlStore
from tidemark.pipes.planning.queues import queue_path
from tidemark.pipes.worker.definitions import create_pipe, pause_pipe, resume_pipe
from tidemark.replication.model.replication import Actor
from tidemark.replication.worker import lifecycle
from tidemark.streams.worker.object_needs import NOTHING_KNOWN, Need, needs_page
from tidemark.streams.worker.opening import open_table

PIPE = "shop.orders_pipe"
WHY = "the <shop> is closed"


@pytest.fixture
def store(copied_store: ControlStore, tmp_path: Path) -> ControlStore:
    """The change stream `s` with the group `g`, and a pipe."""
    world = ChangeStreamWorld(copied_store, tmp_path)
    create_group(copied_store, "s", "g", "earliest")
    left, _ = world.active()
    world.batch(segment(left.token, world.clock.now + timedelta(seconds=1), 7))
    create_pipe(copied_store, PIPE, "COPY INTO shop.orders FROM @landing", queue=queue_path("/lake", PIPE), by="ann")
    return copied_store


def later(store: ControlStore, **span: float) -> None:
    assert isinstance(store.clock, Clock)
    store.clock.now += timedelta(**span)


def act(store: ControlStore, kind: str, name: str, act: str, why: str = WHY) -> None:
    later(store, hours=1)
    uid = store.read(lambda c: find(c, kind, name, now=store.clock())).uid
    shown = store.read(lambda c: offered_now(c, kind, uid, store.clock()))
    act_on(store, ActTools(open_table), Act(kind, uid, act, shown.revision, "ann", why))


def needs(store: ControlStore) -> dict[str, Need]:
    found = store.read(
        lambda c: needs_page(c, NOTHING_KNOWN, ObjectsWish(), after=None, limit=9, now=store.clock())
    ).needs
    return {one.shown.name: one for one in found}


def reason(store: ControlStore, name: str) -> str:
    one = needs(store)[name]
    return one.reason(one.shown)


@pytest.mark.parametrize(
    ("kind", "name", "stop", "state"),
    [
        ("pipe", PIPE, "pause", "paused"),
        ("consumer_group", "s/g", "pause", "paused"),
        ("change_stream", "s", "suspend", "suspended"),
    ],
)
def test_an_object_that_a_person_stopped_has_the_reason_the_person_and_the_time(
    store: ControlStore, kind: str, name: str, stop: str, state: str
) -> None:
    act(store, kind, name, stop)
    stopped_at = store.clock()
    later(store, hours=3)
    assert reason(store, name) == f"it is {state}: {WHY}, by ann"
    assert (needs(store)[name].need, needs(store)[name].since) == ("stopped", stopped_at)


def pipe_again(store: ControlStore) -> None:
    resume_pipe(store, PIPE, by="bob")
    later(store, hours=1)
    pause_pipe(store, PIPE, by="bob")


def group_again(store: ControlStore) -> None:
    resume_group(store, "s", "g")
    later(store, hours=1)
    pause_group(store, "s", "g")


@pytest.mark.parametrize(
    ("kind", "name", "again"), [("pipe", PIPE, pipe_again), ("consumer_group", "s/g", group_again)]
)
def test_a_stop_by_a_command_has_not_the_reason_of_an_earlier_act(
    store: ControlStore, kind: str, name: str, again: Callable[[ControlStore], None]
) -> None:
    act(store, kind, name, "pause")
    again(store)
    assert reason(store, name) == "it is paused"
    act(store, kind, name, "resume")
    assert name not in needs(store)
    act(store, kind, name, "pause", why="once more")
    assert reason(store, name) == "it is paused: once more, by ann"


def test_a_failing_group_that_is_paused_has_its_error_and_can_be_resumed(store: ControlStore) -> None:
    act(store, "consumer_group", "s/g", "pause")
    resume_group(store, "s", "g")
    (chunk,) = plan_wave(store, "s", "g", run="d/r", max_chunks=9, max_rows=100).chunks
    begin_chunks(store, [chunk], "d/r", task="d/r/read/0")
    chunk_failed(store, chunk, "d/r", "no room", task="d/r/read/0")
    later(store, hours=1)
    pause_group(store, "s", "g")
    one = needs(store)["s/g"]
    assert (one.need, one.shown.state, one.run, one.run_met) == ("stopped", "paused", "d/r/read/0", True)
    assert "no room" in one.reason(one.shown)
    assert WHY not in one.reason(one.shown)  # a command has paused it since
    act(store, "consumer_group", "s/g", "resume")
    assert needs(store)["s/g"].shown.state == "failing"


def test_a_pipe_that_became_stale_while_it_was_paused_has_both_reasons(store: ControlStore) -> None:
    act(store, "pipe", PIPE, "pause")
    later(store, days=30)
    said = reason(store, PIPE)
    assert said.startswith("it is stale: paused since ")
    assert said.endswith(f"; it was stopped: {WHY}, by ann")


@pytest.mark.parametrize("at_once", [True, False])
def test_a_replication_has_the_reason_of_its_pause_by_a_person_or_a_task(
    replication_world: World, at_once: bool
) -> None:
    world, store = replication_world, replication_world.store
    lifecycle.start(store, "r", by=ME)
    lifecycle.validated(store, "r", system_id="cluster-1", position=at(16), by=ME)
    state = "paused" if at_once else "draining"
    lifecycle.pause(store, "r", by=Actor("ann", WHY), at_once=at_once)
    assert reason(store, "r") == f"it is {state}: {WHY}, by ann"
    assert (needs(store)["r"].run, needs(store)["r"].run_met) == (ME.run, False)
    lifecycle.drained(store, "r", by=ME)
    assert reason(store, "r") == f"it is paused: {WHY}, by ann"
    lifecycle.resume(store, "r", by=Actor("bob", "it opens"))
    assert "r" not in needs(store)
    lifecycle.pause(store, "r", by=Actor(ME.who, "the night", ME.run), at_once=at_once)
    assert reason(store, "r") == f"it is {state}: the night"
    lifecycle.resume(store, "r", by=ME)
    lifecycle.pause(store, "r", by=Actor("bob"), at_once=at_once)
    assert reason(store, "r") == f"it is {state}: by bob"
    assert world.wrongs == []


def test_a_failed_replication_has_the_task_that_met_its_error(replication_world: World) -> None:
    store = replication_world.store
    lifecycle.start(store, "r", by=ME)
    lifecycle.validated(store, "r", system_id="cluster-1", position=at(16), by=ME)
    lifecycle.failed(store, "r", error="no right to read", by=ME)
    one = needs(store)["r"]
    assert (one.need, one.run, one.run_met) == ("failed", ME.run, True)
    assert one.shown.problem_dags == ("dag",)
