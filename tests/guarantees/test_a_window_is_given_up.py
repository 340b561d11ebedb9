"""A window that can never be finished is abandoned: its stream continues, and no target has any change twice."""

from __future__ import annotations

import shutil

import pytest

from tidemark.delivery.model.transactions import TransactionState
from tidemark.errors import (
    JobsMayBeAlive,
    StorageRefused,
    StreamLocked,
    SubmitRefused,
    TidemarkError,
    TransactionNotFound,
)
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.jobs import JobResult
from tidemark.model.streams import TableRef
from tidemark.streams.store import transactions
from tidemark.streams.worker.abandon import Abandoned, abandon
from tidemark.streams.worker.opening import open_table
from tidemark.streams.worker.rollback import rollback

from .drivers import Driver
from .world import LONG, SHORT, World, key_of


def give_up(world: World) -> Abandoned:
    return abandon(world.store, "s", who="ann", why="vacuumed")


def half_written(world: World) -> None:
    """Target 0 has the window, target 1 has not."""
    world.source.append()
    world.zombie(world.open("one"), steps=2)
    world.clock.go(LONG)


def test_the_stream_continues_and_its_history_says_which_target_has_the_window(world: World) -> None:
    half_written(world)
    done = give_up(world)
    assert done.remains.written == (world.targets[0].uri,)
    assert done.remains.without == (world.targets[1].uri,)
    last = world.history()[-1]
    assert (last.from_version, last.to_version, last.who) == (0, 1, "ann")
    assert last.why.startswith("abandoned: vacuumed (")
    assert world.targets[0].uri in last.why
    world.source.append()
    assert world.consume("two").result.windows[0].from_version == 1
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1, 2: 1}, {2: 1}, 2)


def test_the_same_run_takes_the_next_window(world: World) -> None:
    half_written(world)
    give_up(world)
    world.source.append()
    world.consume("one")
    assert (world.holds(0), world.holds(1)) == ({1: 1, 2: 1}, {2: 1})
    ended = world.store.read(lambda connection: transactions.latest(connection, key_of("one")))
    assert ended.transaction.state is TransactionState.COMMITTED


def test_a_target_that_is_gone_for_good_is_no_hindrance(world: World) -> None:
    half_written(world)
    shutil.rmtree(world.targets[1].path)
    assert "TargetNotFound" in str(give_up(world).remains)
    assert world.offset() == 1


def test_nothing_is_given_up_while_somebody_may_write(world: World) -> None:
    world.source.append()
    world.zombie(world.open("one"), steps=2)
    with pytest.raises(StreamLocked):
        give_up(world)
    world.clock.go(SHORT)
    with pytest.raises(JobsMayBeAlive):
        give_up(world)
    world.clock.go(LONG)
    give_up(world)
    with pytest.raises(TransactionNotFound):
        give_up(world)


def test_what_no_target_has_is_released_and_not_given_up(world: World) -> None:
    world.source.append()
    world.zombie(world.open("one"))
    world.clock.go(LONG)
    with pytest.raises(SubmitRefused, match="streams release s"):
        give_up(world)
    assert world.offset() == 0


def test_all_streams_of_the_transaction_continue_together(world: World) -> None:
    world.stream("t", "other")
    for source in world.sources.values():
        source.append()
    world.zombie(world.open("one", streams=("s", "t")), steps=2)
    world.clock.go(LONG)
    assert len(give_up(world).transaction.windows) == 2
    assert (world.offset("s"), world.offset("t")) == (1, 1)


def test_a_window_that_no_target_has_is_taken_by_the_next_run_if_all_jobs_have_ended(world: World) -> None:
    world.source.append()
    transaction = world.open("one")
    with pytest.raises(TidemarkError):
        world.submit(transaction, lambda spec: failed(world.driver(spec)))
    rollback(world.store, key_of("one"))
    assert (give_up(world).remains.written, world.offset()) == ((), 0)
    world.consume("two")
    assert (world.holds(0), world.holds(1)) == ({1: 1}, {1: 1})


def test_a_target_whose_storage_refuses_it_is_unclear(world: World) -> None:
    half_written(world)
    gone = world.targets[1].uri

    def tables(table: TableRef | str) -> DeltaLog:
        log = open_table(table)
        if log.uri == gone:
            raise StorageRefused(place=gone, problem="no right")
        return log

    done = abandon(world.store, "s", who="ann", why="rights are gone", tables=tables)
    assert (done.remains.written, world.offset()) == ((world.targets[0].uri,), 1)
    assert "StorageRefused" in done.remains.unclear[0]


def failed(driver: Driver) -> JobResult:
    driver.fail()
    assert driver.result is not None
    return driver.result
