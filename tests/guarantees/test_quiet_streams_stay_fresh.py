"""R86: a look that finds nothing keeps a stream fresh; and what proves to be nothing can be passed over."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.guarantees.world import World
from tidemark.errors import StreamStale
from tidemark.model.streams import StreamWindow
from tidemark.streams.worker.has_data import RENEWED_EVERY, has_data, has_rows
from tidemark.streams.worker.sources import open_table
from tidemark.streams.worker.status import status_of
from tidemark.streams.worker.streams import get_stream, stream_history

WEEK = timedelta(days=7)


def stale_after(world: World) -> timedelta:
    """How long from now."""
    return status_of(get_stream(world.store, "s"), open_table).stale_after - world.clock.now


def test_R86_a_no_renews_the_anchor_and_moves_nothing(world: World) -> None:
    world.clock.go(WEEK - timedelta(hours=1))
    assert stale_after(world) == timedelta(hours=1)
    assert not has_data(world.store, "s")
    assert (stale_after(world), world.offset(), len(stream_history(world.store, "s"))) == (WEEK, 0, 1)


def test_R86_a_yes_does_not(world: World) -> None:
    world.clock.go(WEEK - timedelta(hours=1))
    world.source.append()
    assert has_data(world.store, "s")
    assert stale_after(world) == timedelta(hours=1)


def test_R86_nothing_revives_a_stale_stream(world: World) -> None:
    world.clock.go(WEEK + timedelta(hours=1))
    assert not has_data(world.store, "s")
    assert stale_after(world) == -timedelta(hours=1)


def test_a_store_is_not_written_at_every_look(world: World) -> None:
    world.clock.go(RENEWED_EVERY / 2)
    anchor = get_stream(world.store, "s").anchor
    assert not has_data(world.store, "s")
    assert get_stream(world.store, "s").anchor == anchor
    world.clock.go(RENEWED_EVERY / 2)
    assert not has_data(world.store, "s")
    assert get_stream(world.store, "s").anchor == world.clock.now


def test_a_window_that_is_proven_empty_is_passed_by_name(world: World) -> None:
    world.source.append()
    asked: list[StreamWindow] = []

    def none(window: StreamWindow) -> bool:
        asked.append(window)
        return False

    assert not has_rows(world.store, "s", holds_rows=none)
    assert world.offset() == 0
    assert not has_rows(world.store, "s", holds_rows=none, pass_as="dag/run/wait")
    last = world.history()[-1]
    assert (world.offset(), last.who, last.why) == (1, "dag/run/wait", "proven empty")
    assert not has_rows(world.store, "s", holds_rows=none, pass_as="dag/run/wait")
    assert [(window.start, window.end) for window in asked] == [(0, 1), (0, 1)]  # the third look needed none


def test_what_came_while_the_rows_were_read_is_not_passed(world: World) -> None:
    world.source.append()

    def slow(window: StreamWindow) -> bool:
        world.source.append()
        return False

    assert not has_rows(world.store, "s", holds_rows=slow, pass_as="dag/run/wait")
    assert (world.offset(), has_data(world.store, "s")) == (1, True)


def test_a_window_that_another_has_taken_meanwhile_is_not_passed_again(world: World) -> None:
    world.source.append()

    def outrun(window: StreamWindow) -> bool:
        world.consume("one")
        return False

    assert not has_rows(world.store, "s", holds_rows=outrun, pass_as="dag/run/wait")
    assert [move.why for move in world.history()] == ["created", "consumed"]


def test_an_open_transaction_keeps_its_window(world: World) -> None:
    world.source.append()
    held = world.open("one")
    assert not has_rows(world.store, "s", holds_rows=lambda window: False, pass_as="dag/run/wait")
    assert world.offset() == 0
    world.finish(held)
    assert [move.why for move in world.history()] == ["created", "consumed"]


def test_a_stream_of_the_same_name_is_not_moved_for_the_one_that_was_read(world: World) -> None:
    world.source.append()

    def replaced(window: StreamWindow) -> bool:
        world.stream(or_replace=True, at_version=0)
        return False

    assert not has_rows(world.store, "s", holds_rows=replaced, pass_as="dag/run/wait")
    assert world.offset() == 0


def test_R86_commits_without_data_age_until_they_are_consumed(world: World) -> None:
    world.source.optimize()
    world.clock.go(WEEK - timedelta(hours=1))
    assert not has_data(world.store, "s")
    assert stale_after(world) == timedelta(hours=1)
    world.delivered("one")
    assert (stale_after(world), world.offset()) == (WEEK, 1)


def test_rows_and_initial_rows_are_left_to_the_consumer(world: World) -> None:
    world.source.append()
    assert has_rows(world.store, "s", holds_rows=lambda window: True, pass_as="dag/run/wait")
    world.stream("initial", initial_rows=True)
    assert has_rows(world.store, "initial", holds_rows=lambda window: False, pass_as="dag/run/wait")
    assert (world.offset(), world.offset("initial")) == (0, 1)


def test_a_lost_log_is_said_and_not_renewed(world: World) -> None:
    for _ in range(3):
        world.source.append()
    world.source.checkpoint()
    world.source.clean_up(before=3)
    world.clock.go(timedelta(hours=2))
    anchor = get_stream(world.store, "s").anchor
    with pytest.raises(StreamStale):
        has_data(world.store, "s")
    assert get_stream(world.store, "s").anchor == anchor
