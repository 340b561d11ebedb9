"""R82–R85, R91: a source that is another table, or whose history is gone, is an error before anything is pinned."""

from __future__ import annotations

import pytest

from tidemark.errors import SourceRecreated, StreamStale, TableNotFound, TrackingInterrupted
from tidemark.streams.worker.begin import get_transaction
from tidemark.streams.worker.has_data import has_data

from .world import World, key_of


def test_a_recreated_source_is_another_table_r91(world: World) -> None:
    world.source.recreate()
    world.source.append()
    with pytest.raises(SourceRecreated):
        world.begin("one")
    with pytest.raises(SourceRecreated):
        has_data(world.store, "s")


def test_a_replaced_source_is_another_table_r82(world: World) -> None:
    world.source.replace()
    with pytest.raises(SourceRecreated):
        world.begin("one")


def test_history_that_is_gone_makes_the_stream_stale_r84(world: World) -> None:
    for _ in range(4):
        world.source.append()
    world.source.checkpoint()
    world.source.clean_up(3)
    with pytest.raises(StreamStale) as stale:
        world.begin("one")
    assert (stale.value.stream, stale.value.version) == ("s", 0)


def test_history_that_is_gone_behind_the_offset_does_no_harm(world: World) -> None:
    for _ in range(4):
        world.source.append()
    world.consume("one")
    world.source.checkpoint()
    world.source.append()
    world.source.clean_up(5)
    world.consume("two")
    assert world.offset() == 5


def test_a_log_that_begins_right_behind_the_offset_is_stale_before_a_job_is_started_r84(world: World) -> None:
    """The window's commits are there, but what the table was at the offset is not: no job could read it."""
    for _ in range(4):
        world.source.append()
    world.consume("one")
    world.source.append()
    world.source.checkpoint()
    world.source.clean_up(5)
    with pytest.raises(StreamStale):
        world.begin("two")


def test_row_tracking_that_is_off_is_said_r85(world: World) -> None:
    world.source.append()
    world.source.configure(delta__enableRowTracking="false")
    with pytest.raises(TrackingInterrupted):
        world.begin("one")


def test_a_dropped_source_is_said(world: World) -> None:
    world.source.drop()
    with pytest.raises(TableNotFound):
        world.begin("one")


def test_an_open_window_survives_what_happens_to_its_source(world: World) -> None:
    world.source.append()
    first = world.open("one")
    world.source.recreate()
    assert world.open("one").windows == first.windows
    assert get_transaction(world.store, key_of("one")).windows == first.windows
