"""V13, I8: what somebody else submitted and left is finished whole; all streams of a transaction move together."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from tidemark.delivery.model.transactions import TransactionState
from tidemark.errors import JobDied, StreamLocked, Superseded
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.streams.worker.begin import get_transaction
from tidemark.streams.worker.commit import commit
from tidemark.streams.worker.limits import Limits
from tidemark.streams.worker.rollback import rollback
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.submit import submit

from .world import SHORT, World, key_of


@pytest.fixture
def two_streams(world: World) -> World:
    world.stream("t", "other")
    world.source.append()
    world.sources["other"].append()
    return world


def test_a_takeover_finishes_every_stream_and_statement_v13(two_streams: World) -> None:
    world = two_streams
    zombie = world.zombie(world.open("one", streams=("s", "t")), steps=1)
    world.clock.go(SHORT)
    world.sources["other"].append()
    begun = world.begin("two", streams=("t",), writes=world.writes(0))
    assert [[w.stream for w in result.windows] for result in begun.finished] == [["s", "t"]]
    zombie.run()
    world.finish(begun.transaction)
    assert (world.holds(0), world.holds(1)) == ({1: 1}, {1: 1})
    assert (world.holds(0, "t"), world.holds(1, "t")) == ({1: 1, 2: 1}, {1: 1})
    assert (world.offset(), world.offset("t")) == (1, 2)


def test_the_key_that_was_superseded_delivers_nothing_and_names_who_did(world: World) -> None:
    world.source.append()
    stale = world.open("one")
    world.zombie(stale)
    world.clock.go(SHORT)
    begun = world.begin("two")
    kept = get_transaction(world.store, key_of("one"))
    assert (kept.state, kept.superseded_by) == (TransactionState.SUPERSEDED, key_of("two"))
    late = world.delivered("one")
    assert (late.by, late.result) == (key_of("two"), begun.finished[0])
    assert commit(world.store, key_of("one")) == begun.finished[0]


def test_while_a_taker_works_the_first_key_waits(world: World) -> None:
    world.source.append()
    stale = world.open("one")
    world.zombie(stale)
    world.clock.go(SHORT)
    seen = []

    def run(spec: JobSpec) -> JobResult:
        for attempt in (lambda: world.begin("one"), lambda: world.begin("three")):
            with pytest.raises(StreamLocked) as locked:
                attempt()
            seen.append(locked.value.holder)
        late = world.driver(spec)
        late.run()
        with pytest.raises(Superseded):
            commit(world.store, key_of("one"), late.evidence)
        return world.run(spec)

    world.begin_with(run, "two")
    assert seen == [str(key_of("two"))] * 2
    assert (world.holds(0), world.offset()) == ({1: 1}, 1)


def test_a_takeover_that_fails_gives_the_lease_up(world: World) -> None:
    world.source.append()
    world.zombie(world.open("one"))
    world.clock.go(SHORT)

    def die(spec: JobSpec) -> JobResult:
        raise JobDied(key=str(spec.key), exit_code=1, tail="")

    with pytest.raises(JobDied):
        world.begin_with(die, "two")
    assert world.begin("three").finished
    assert (world.holds(0), world.offset()) == ({1: 1}, 1)


def test_the_first_key_takes_its_window_back_when_the_taker_has_gone(world: World) -> None:
    world.source.append()
    world.zombie(world.open("one"))
    world.clock.go(SHORT)

    def vanish(spec: JobSpec) -> JobResult:
        world.driver(spec).step()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        world.begin_with(vanish, "two")
    world.finish(world.open("one"))
    for driver in world.drivers:
        driver.run()
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {1: 1}, 1)


def test_a_takers_own_retry_goes_on(world: World) -> None:
    world.source.append()
    world.zombie(world.open("one"))
    world.clock.go(SHORT)

    class Gone(BaseException):
        pass

    def vanish(spec: JobSpec) -> JobResult:
        world.driver(spec).step()
        raise Gone

    with pytest.raises(Gone):
        world.begin_with(vanish, "two")
    assert world.begin("two").finished


def test_an_unsubmitted_window_is_released_when_its_lease_is_over(world: World) -> None:
    world.source.append()
    world.open("one")
    world.source.append()
    with pytest.raises(StreamLocked):
        world.begin("two")
    world.clock.go(SHORT)
    transaction = world.open("two")
    assert (transaction.windows[0].end, get_transaction(world.store, key_of("one")).state) == (
        2,
        TransactionState.RELEASED,
    )


def test_all_streams_move_or_none_i8(two_streams: World) -> None:
    world = two_streams
    transaction = world.open("one", streams=("s", "t"))
    submit(world.runtime, transaction, only=(1,))
    rollback(world.store, key_of("one"))
    assert (world.offset(), world.offset("t")) == (0, 0)
    world.finish(world.open("one", streams=("s", "t")))
    assert (world.offset(), world.offset("t")) == (1, 1)


def test_the_lease_is_renewed_while_a_job_runs(world: World) -> None:
    world.source.append()
    limits = Limits(lease=timedelta(seconds=0.3))
    transaction = world.open("one", limits=limits)
    before = get_transaction(world.store, key_of("one")).lease_until

    def slow(spec: JobSpec) -> JobResult:
        world.clock.go(timedelta(seconds=20))
        for _ in range(50):
            time.sleep(0.05)
            if get_transaction(world.store, key_of("one")).lease_until > before + timedelta(seconds=19):
                break
        with pytest.raises(StreamLocked):
            world.begin("two")
        return world.run(spec)

    submit(Runtime(world.store, run=slow, paths=world.paths, limits=limits), transaction)
    commit(world.store, transaction.key)
    assert world.offset() == 1
