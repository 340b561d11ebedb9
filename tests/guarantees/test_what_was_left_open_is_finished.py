"""PROTOCOL step 4 for the interactive form: the next transaction on a stream finishes what was submitted on it."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta

import pytest

from tidemark.delivery.model.transactions import Transaction, TransactionState
from tidemark.errors import JobDied, StreamLocked, TransactionNotFound
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.statements import TransactionKey
from tidemark.streams.worker.begin import begin, get_transaction
from tidemark.streams.worker.commit import commit
from tidemark.streams.worker.extend import extend
from tidemark.streams.worker.finish import finish
from tidemark.streams.worker.limits import Limits
from tidemark.streams.worker.rollback import rollback
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.streams import advance_stream, open_transaction

from .world import SHORT, World, key_of

BY = TransactionKey("client", "7", "finish")


def client(world: World, name: str, *streams: str) -> Transaction:
    """A client's transaction on these streams, with both targets; it is not submitted."""
    key = begin(world.runtime, key=key_of(name), streams=(), writes=(), owner=f"notebook of {name}").transaction.key  # type: ignore[union-attr]
    for stream in streams or ("s",):
        extend(world.runtime, key, streams=(stream,))
    return extend(world.runtime, key, writes=world.writes())


def ended(world: World, stream: str = "s") -> Transaction | None:
    return finish(world.runtime, stream, by=BY, owner="ann")


def left_open(world: World, *streams: str, steps: int = 2) -> None:
    """A client that dies after its submit, with the first target written; its lease has run out."""
    world.source.append()
    world.zombie(client(world, "one", *streams), steps=steps)
    world.clock.go(SHORT)


@pytest.mark.parametrize("steps", [0, 2, 4])
def test_the_next_client_transaction_finishes_it_and_takes_what_came_since(world: World, steps: int) -> None:
    left_open(world, steps=steps)
    world.source.append()
    mine = client(world, "two")
    assert get_transaction(world.store, key_of("one")).superseded_by == key_of("two")
    assert (mine.windows[0].start, mine.windows[0].end) == (1, 2)
    world.finish(mine)
    for driver in world.drivers:
        driver.run()
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1, 2: 1}, {1: 1, 2: 1}, 2)


def test_it_is_finished_whole_though_only_one_of_its_streams_is_wanted_v13(world: World) -> None:
    world.stream("t", "other")
    world.sources["other"].append()
    left_open(world, "s", "t")
    world.finish(client(world, "two", "t"))
    assert (world.offset(), world.offset("t")) == (1, 1)
    assert (world.holds(0), world.holds(0, "t")) == ({1: 1}, {1: 1})


def test_one_of_its_own_that_failed_in_the_middle_is_finished_by_the_next(world: World) -> None:
    """As when a row breaks a CHECK of the second target: the first one has its part."""
    world.source.append()
    transaction = client(world, "one")

    def dies(spec: JobSpec) -> JobResult:
        driver = world.driver(spec)
        driver.step()
        driver.step()
        driver.fail()
        raise JobDied(key=str(spec.key), exit_code=1, tail="")

    with pytest.raises(JobDied):
        world.submit(transaction, dies)
    rollback(world.store, transaction.key)
    world.finish(client(world, "two"))
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {1: 1}, 1)


def test_while_another_is_finished_the_streams_that_are_held_already_stay_held(world: World) -> None:
    world.stream("t", "other")
    left_open(world)
    limits = Limits(lease=timedelta(seconds=0.3))
    key = begin(
        replace(world.runtime, limits=limits), key=key_of("two"), streams=("t",), writes=(), owner="two"
    ).transaction.key  # type: ignore[union-attr]

    def slow(spec: JobSpec) -> JobResult:
        before = get_transaction(world.store, key).lease_until
        world.clock.go(timedelta(seconds=20))
        for _ in range(100):
            if get_transaction(world.store, key).lease_until > before:
                break
            time.sleep(0.05)
        with pytest.raises(StreamLocked):
            world.begin("three", streams=("t",), writes=())
        return world.run(spec)

    extend(Runtime(world.store, run=slow, paths=world.paths, limits=limits), key, streams=("s",))
    assert [window.stream_name for window in get_transaction(world.store, key).windows] == ["t", "s"]


def test_a_living_holder_is_named_with_its_owner_and_is_waited_for(world: World) -> None:
    world.source.append()
    client(world, "one")
    for attempt in (lambda: client(world, "two"), lambda: ended(world)):
        with pytest.raises(StreamLocked, match="notebook of one"):
            attempt()
    world.zombie(get_transaction(world.store, key_of("one")))
    with pytest.raises(StreamLocked):
        ended(world)


def test_on_request_it_is_finished_and_the_user_may_act_again(world: World) -> None:
    left_open(world)
    done = ended(world)
    assert done is not None
    assert (done.state, done.superseded_by, done.result is not None) == (TransactionState.SUPERSEDED, BY, True)
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {1: 1}, 1)
    assert ended(world) is None
    world.source.append()
    advance_stream(world.store, "s", 2, "ann", "skip")
    assert commit(world.store, key_of("one")) == done.result


def test_on_request_what_was_never_submitted_is_given_back(world: World) -> None:
    world.source.append()
    client(world, "one")
    world.clock.go(SHORT)
    done = ended(world)
    assert done is not None
    assert (done.state, world.offset()) == (TransactionState.RELEASED, 0)
    with pytest.raises(TransactionNotFound):
        open_transaction(world.store, "s")


def test_a_request_that_fails_leaves_it_to_the_next(world: World) -> None:
    left_open(world)

    def dies(spec: JobSpec) -> JobResult:
        raise JobDied(key=str(spec.key), exit_code=1, tail="")

    with pytest.raises(JobDied) as died:
        finish(Runtime(world.store, run=dies, paths=world.paths), "s", by=BY, owner="ann")
    assert str(key_of("one")) in died.value.__notes__[0]
    assert ended(world) is not None
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {1: 1}, 1)
