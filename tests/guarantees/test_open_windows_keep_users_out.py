"""V4, V5: a stream with an open transaction is neither moved nor dropped nor replaced; a new stream has a new uid."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tidemark.errors import InvalidArgument, StreamNotFound, TransactionOpen
from tidemark.streams.worker.rollback import rollback
from tidemark.streams.worker.streams import advance_stream, drop_stream, get_stream, stream_history

from .world import SHORT, World, key_of

ACTS: dict[str, Callable[[World], object]] = {
    "advanced": lambda world: advance_stream(world.store, "s", world.source.head(), "ann", "skip"),
    "dropped": lambda world: drop_stream(world.store, "s", "ann"),
    "replaced": lambda world: world.stream(or_replace=True),
}


@pytest.mark.parametrize("action", ACTS)
def test_it_is_refused_while_a_transaction_is_open_v4_v5(world: World, action: str) -> None:
    world.source.append()
    transaction = world.open("one")
    world.source.append()
    with pytest.raises(TransactionOpen) as refused:
        ACTS[action](world)
    assert (refused.value.action, refused.value.key) == (action, str(key_of("one")))
    world.finish(transaction)
    assert (world.holds(0), world.offset()) == ({1: 1}, 1)
    ACTS[action](world)


@pytest.mark.parametrize("action", ACTS)
def test_a_submitted_window_keeps_users_out_even_when_its_lease_is_over(world: World, action: str) -> None:
    world.source.append()
    world.zombie(world.open("one"), steps=2)
    world.clock.go(SHORT)
    with pytest.raises(TransactionOpen):
        ACTS[action](world)
    rollback(world.store, key_of("one"))
    with pytest.raises(TransactionOpen):
        ACTS[action](world)


def test_an_unsubmitted_window_whose_lease_is_over_does_not(world: World) -> None:
    world.source.append()
    world.open("one")
    world.clock.go(SHORT)
    advance_stream(world.store, "s", 1, "ann", "skip")
    assert world.offset() == 1


def test_a_replaced_stream_shares_nothing_with_the_old_one_v5(world: World) -> None:
    world.source.append()
    world.consume("one")
    old = get_stream(world.store, "s")
    world.source.append()
    world.stream(or_replace=True, at_version=0)
    new = get_stream(world.store, "s")
    assert (new.uid != old.uid, new.serial, new.offset.version) == (True, 0, 0)
    world.consume("two")
    assert (world.holds(0), world.offset()) == ({1: 1, 2: 1}, 2)


def test_an_advance_is_logged_and_never_goes_back_i4(world: World) -> None:
    world.source.append()
    world.source.append()
    advance_stream(world.store, "s", 2, "ann", "a load that is not wanted")
    with pytest.raises(InvalidArgument):
        advance_stream(world.store, "s", 1, "ann", "back")
    moved = world.history()[-1]
    assert (moved.from_version, moved.to_version, moved.who, moved.why, moved.run) == (
        0,
        2,
        "ann",
        "a load that is not wanted",
        None,
    )


def test_a_dropped_stream_is_gone(world: World) -> None:
    drop_stream(world.store, "s", "ann")
    with pytest.raises(StreamNotFound):
        stream_history(world.store, "s")
    with pytest.raises(StreamNotFound):
        world.begin("one")
