"""The errors that a replication and its objects have met, as a list: equal ones are counted, old ones leave."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.control.replication_model import ME, Ends, World, found
from tests.control.rights import let_prune
from tidemark.errors import JobFailed, ObjectNotFound, ReplicationNotFound, SlotLost, SourceUnreachable
from tidemark.replication.model.recorded_errors import RecordedError
from tidemark.replication.store import replication_errors as stored_errors
from tidemark.replication.worker import definitions, lifecycle
from tidemark.replication.worker.errors import replication_errors
from tidemark.streams.worker.pruning import prune

HOUR = timedelta(hours=1)
DOWN = SourceUnreachable(source="the source", problem="it is down")


@pytest.fixture
def world(replication_world: World) -> World:
    return replication_world


def errors(world: World, **how: str | int) -> list[tuple[str | None, str, int]]:
    """Object, reason and count of each, the one that was seen last first."""
    return [(one.object, one.reason, one.count) for one in listed(world, **how)]


def listed(world: World, **how: str | int) -> tuple[RecordedError, ...]:
    return replication_errors(world.store, world.name, **how)  # type: ignore[arg-type]


def capture_in_vain(world: World) -> None:
    world.source.down = True
    with pytest.raises(SourceUnreachable):
        world.capture()
    world.source.down = False


def test_an_error_of_a_capture_is_kept_with_its_time_and_run_and_a_second_one_is_counted(world: World) -> None:
    world.start("s.a")
    assert errors(world) == []
    first = world.clock.now
    capture_in_vain(world)
    world.clock.go(HOUR)
    capture_in_vain(world)
    world.capture()  # which heals the replication, and the list stays
    assert world.replication.error is None
    (one,) = listed(world)
    assert (one.object, one.reason, one.count) == (None, "SourceUnreachable", 2)
    assert (one.first_seen, one.last_seen, one.run) == (first, first + HOUR, ME.run)
    assert "it is down" in one.message


def test_another_object_reason_or_message_is_another_error_and_the_latest_is_first(world: World) -> None:
    world.start("s.a", "s.b")
    for name in ("s.a", "s.b"):
        world.clock.go(HOUR)
        with pytest.raises(SourceUnreachable):
            world.backfill(name, Ends.ERROR)
    world.clock.go(HOUR)
    lifecycle.settle(world.store, "r", error=DOWN, by=ME)
    lifecycle.settle(world.store, "r", error=SourceUnreachable(source="the source", problem="it is up"), by=ME)
    assert errors(world)[2:] == [("s.b", "SourceUnreachable", 1), ("s.a", "SourceUnreachable", 1)]
    assert errors(world)[:2] == [(None, "SourceUnreachable", 1)] * 2
    assert errors(world, object_name="s.a") == [("s.a", "SourceUnreachable", 1)]
    assert errors(world, limit=1) == errors(world)[:1]


def test_an_apply_that_fails_is_an_error_of_its_object_at_each_attempt(world: World) -> None:
    world.replicated("s.a")
    world.source.commit("id of s.a")
    world.capture()
    for _ in range(2):
        with pytest.raises(JobFailed):
            world.apply("s.a", Ends.ERROR_BEHIND)
        world.clock.go(HOUR)
    assert errors(world) == [("s.a", "JobFailed", 2)]
    world.apply("s.a")
    assert errors(world) == [("s.a", "JobFailed", 2)]


def test_a_table_that_cannot_be_replicated_is_an_error_once_and_not_at_every_look(world: World) -> None:
    world.start("s.a")
    for _ in range(2):
        world.register(found("s.a"), found("s.b", unsupported="it is too wide"))
    assert errors(world) == [("s.b", "ObjectNotReplicable", 1)]
    world.register(found("s.a", unsupported="it is gone to a view"), found("s.b", unsupported="it is wider yet"))
    messages = {(one.object, one.message) for one in listed(world)}
    assert messages == {
        ("s.a", "it is gone to a view"), ("s.b", "it is too wide"), ("s.b", "it is wider yet"),
    }  # fmt: skip


def test_a_backfill_that_is_needed_is_an_error_of_its_object(world: World) -> None:
    world.replicated("s.a")
    world.register(found("s.a", source_id="of another table"))
    (one,) = listed(world)
    assert (one.object, one.reason, one.count) == ("s.a", "BackfillNeeded", 1)
    assert "was dropped in the source and recreated" in one.message


def test_a_start_that_is_invalid_and_a_lost_slot_are_errors_of_the_replication(world: World) -> None:
    lifecycle.start(world.store, "r", by=ME)
    lifecycle.invalid(world.store, "r", problems="wal_level is replica", by=ME)
    world.clock.go(HOUR)
    world.start("s.a")
    lifecycle.settle(world.store, "r", error=SlotLost(slot="s", problem="is gone", position="0/1"), by=ME)
    assert errors(world) == [(None, "SlotLost", 1), (None, "ReplicationInvalid", 1)]
    assert listed(world)[1].message == "wal_level is replica"


def test_acts_that_keep_an_earlier_error_do_not_count_it_again(world: World) -> None:
    world.start("s.a")
    capture_in_vain(world)
    lifecycle.start(world.store, "r", by=ME)  # of one that failed: it stays as it is
    lifecycle.let_drain(world.store, "r", by=ME)
    assert errors(world) == [(None, "SourceUnreachable", 1)]


def test_secrets_are_taken_out_before_an_error_is_kept(world: World) -> None:
    world.store.hide = lambda text: text.replace("hunter2", "***")
    world.start("s.a")
    lifecycle.settle(world.store, "r", error=SourceUnreachable(source="s", problem="password hunter2"), by=ME)
    assert [("hunter2" in one.message, "***" in one.message) for one in listed(world)] == [(False, True)]


def test_a_replication_has_a_bounded_number_of_errors_the_latest_ones(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_errors, "MOST", 3)
    world.start("s.a")
    for number in range(5):
        lifecycle.settle(world.store, "r", error=SourceUnreachable(source="s", problem=f"for the {number}."), by=ME)
        world.clock.go(HOUR)
    assert [one.message.split("the ")[1][0] for one in listed(world)] == ["4", "3", "2"]
    assert {one.count for one in listed(world)} == {1}


def test_errors_go_with_their_replication_and_those_of_others_stay(world: World) -> None:
    world.start("s.a")
    capture_in_vain(world)
    other = world.create("other")
    lifecycle.failed(world.store, "other", error="it broke", by=ME)
    definitions.begin_drop(world.store, "r", by=ME)
    definitions.drop_replication(world.store, "r", by=ME)
    with pytest.raises(ReplicationNotFound):
        listed(world)
    left = world.store.read(lambda connection: stored_errors.of_replication(connection, other.uid, limit=9))
    assert [one.reason for one in left] == ["ReplicationError"]
    world.create("r")
    assert errors(world) == []


def test_errors_that_were_not_seen_for_long_are_pruned(world: World, request: pytest.FixtureRequest) -> None:
    world.start("s.a")
    for number in range(5):
        lifecycle.settle(world.store, "r", error=SourceUnreachable(source="s", problem=f"for the {number}."), by=ME)
    world.clock.go(timedelta(days=40))
    lifecycle.settle(world.store, "r", error=SourceUnreachable(source="s", problem="for the 2."), by=ME)
    world.clock.go(timedelta(days=60))
    let_prune(world.store, request)
    dropped = prune(world.store, timedelta(days=90), at_once=2, pause=lambda _: None)
    assert dropped["errors of replications"] == 4
    (left,) = listed(world)
    assert ("for the 2." in left.message, left.count) == (True, 2)
    assert prune(world.store, timedelta(days=90), pause=lambda _: None)["errors of replications"] == 0


def test_an_object_that_is_not_there_is_named(world: World) -> None:
    world.start("s.a")
    with pytest.raises(ObjectNotFound):
        listed(world, object_name="s.nothing")
