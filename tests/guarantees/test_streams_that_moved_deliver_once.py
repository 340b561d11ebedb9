"""A stream that goes on in another control store: what the old one has written is not written again unsaid."""

from __future__ import annotations

import pytest

from tidemark.control.store import ControlStore
from tidemark.errors import StoreOlderThanLake
from tidemark.streams.worker.transfer import export_streams, import_streams

from .world import World


def move(world: World) -> None:
    """The old store is given up for a new one."""
    document = export_streams(world.store)
    world.store = ControlStore(f"sqlite:///{world.root}/new.db", clock=world.clock)
    import_streams(world.store, document, who="ben")


def test_a_stream_goes_on_where_it_stood_and_each_change_arrives_once(world: World) -> None:
    world.source.append()
    world.consume("one")
    world.source.append()
    move(world)
    world.consume("two")
    world.source.append()
    world.consume("three")
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1, 2: 1, 3: 1}, {1: 1, 2: 1, 3: 1}, 3)


def test_a_window_that_was_written_and_not_committed_at_export_is_refused_and_not_written_twice(world: World) -> None:
    world.source.append()
    world.run_unseen(world.open("one"))
    move(world)
    with pytest.raises(StoreOlderThanLake):
        world.consume("two")
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {1: 1}, 0)


def test_an_open_window_that_no_target_has_is_delivered_by_the_new_store_and_a_late_driver_adds_nothing(
    world: World,
) -> None:
    world.source.append()
    late = world.zombie(world.open("one"))
    move(world)
    world.consume("two")
    assert late.run().error is not None
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {1: 1}, 1)


def test_what_was_committed_after_the_export_is_refused_and_not_written_twice(world: World) -> None:
    world.source.append()
    document = export_streams(world.store)
    world.consume("one")
    world.store = ControlStore(f"sqlite:///{world.root}/new.db", clock=world.clock)
    import_streams(world.store, document, who="ben")
    with pytest.raises(StoreOlderThanLake):
        world.consume("two")
    assert (world.holds(0), world.holds(1)) == ({1: 1}, {1: 1})
