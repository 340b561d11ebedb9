"""V8, V9, V11, V12: a target that changed while a window was pinned is an error, never "done"; redo writes it once."""

from __future__ import annotations

import pytest

from tidemark.delivery.model.transactions import TransactionState
from tidemark.errors import (
    InvalidArgument,
    JobsMayBeAlive,
    LogIncomplete,
    SubmitRefused,
    TargetChanged,
    TargetForgetsTransactions,
    TargetNotFound,
    TargetRewound,
)
from tidemark.streams.worker.redo import redo
from tidemark.streams.worker.replan import replan
from tidemark.streams.worker.targets import retention

from .world import LONG, SHORT, World, key_of


def test_a_restored_target_is_an_error_and_redo_writes_it_again_v8(world: World) -> None:
    world.source.append()
    world.zombie(world.open("one"), steps=2)
    world.targets[0].restore(0)
    with pytest.raises(TargetRewound):
        world.submit(world.open("one"))
    world.clock.go(LONG)
    redo(world.store, key_of("one"))
    world.finish(world.open("one"))
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {1: 1}, 1)


def test_a_replaced_target_is_an_error_and_redo_writes_into_the_new_one_v8(world: World) -> None:
    world.source.append()
    world.zombie(world.open("one"), steps=2)
    world.targets[0].replace()
    with pytest.raises(TargetChanged):
        world.begin("one")
    world.clock.go(LONG)
    redo(world.store, key_of("one"))
    world.finish(world.open("one"))
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {1: 1}, 1)


def test_an_expired_entry_does_not_let_a_window_in_twice_v9(world: World) -> None:
    world.source.append()
    world.zombie(world.open("one"), steps=2)
    world.targets[0].expire()
    world.finish(world.open("one"))
    assert (world.holds(0), world.holds(1)) == ({1: 1}, {1: 1})


@pytest.mark.parametrize("setting", ["interval 6 hours", "interval 1 minute", "2 hours"])
def test_a_target_that_forgets_too_soon_is_refused_v9(world: World, setting: str) -> None:
    world.source.append()
    world.targets[1].configure(delta__setTransactionRetentionDuration=setting)
    with pytest.raises(TargetForgetsTransactions):
        world.begin("one")
    assert world.offset() == 0


def test_a_target_that_remembers_long_enough_is_taken(world: World) -> None:
    world.source.append()
    world.targets[1].configure(delta__setTransactionRetentionDuration="interval 1 week")
    world.consume("one")
    assert world.holds(1) == {1: 1}


@pytest.mark.parametrize(
    ("setting", "hours"), [("interval 1 week 1 day", 192), ("interval 90 minutes", 1.5), ("7 days", 168)]
)
def test_intervals_are_read_as_delta_writes_them(setting: str, hours: float) -> None:
    assert retention(setting).total_seconds() == hours * 3600


def test_an_interval_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(InvalidArgument):
        retention("a while")


def test_a_late_driver_keeps_a_recreated_target_closed_v11(world: World) -> None:
    world.source.append()
    zombie = world.zombie(world.open("one"), steps=1)
    world.targets[0].recreate()
    world.stream("t")
    world.source.append()
    with pytest.raises(JobsMayBeAlive):
        world.begin("two", streams=("t",))
    world.clock.go(LONG)
    assert not zombie.alive
    world.finish(world.open("two", streams=("t",)))
    assert world.holds(0, "t") == {2: 1}


def test_redo_does_not_take_a_log_that_was_cleaned_up_for_an_empty_one(world: World) -> None:
    world.source.append()
    world.zombie(world.open("one"), steps=2)  # the write stands in the first target, unreported
    world.targets[0].append()
    world.targets[0].checkpoint()
    world.targets[0].clean_up(before=world.targets[0].head())
    world.clock.go(LONG)
    with pytest.raises(LogIncomplete):
        redo(world.store, key_of("one"))
    assert world.offset() == 0


def test_redo_waits_until_no_job_can_be_alive_v11(world: World) -> None:
    world.source.append()
    zombie = world.zombie(world.open("one"), steps=1)
    world.targets[0].recreate()
    with pytest.raises(JobsMayBeAlive):
        redo(world.store, key_of("one"))
    zombie.step()  # writes into the new table, then finds it changed
    world.clock.go(LONG)
    redo(world.store, key_of("one"))
    world.finish(world.open("one"))
    assert (world.holds(0), world.holds(1)) == ({1: 1}, {1: 1})


def test_redo_adopts_a_target_that_has_the_window_already_v12(world: World) -> None:
    for _ in range(5):
        world.targets[0].append()
    world.source.append()
    zombie = world.zombie(world.open("one"), steps=1)
    world.targets[0].recreate()
    zombie.run()  # its write landed in the new table, its report did not
    world.clock.go(LONG)
    adopted = redo(world.store, key_of("one"))
    first, second = adopted.plan.statements
    assert (first.target.table_id, first.txn_version, second.txn_version) == (world.targets[0].table_id, 1, 2)
    assert (first.base_version, redo(world.store, key_of("one")).plan.statements[0].txn_version) == (0, 1)
    world.finish(world.open("one"))
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {1: 1}, 1)


def test_redo_follows_a_restore_to_after_the_write(world: World) -> None:
    world.source.append()
    world.zombie(world.open("one"), steps=2)
    world.targets[0].replace()
    world.targets[0].restore(1)
    world.clock.go(LONG)
    redo(world.store, key_of("one"))
    world.finish(world.open("one"))
    assert world.holds(0) == {1: 1}


def test_a_rewound_target_cannot_be_released_before_redo(world: World) -> None:
    world.source.append()
    world.zombie(world.open("one"), steps=2)
    world.targets[0].restore(0)
    world.clock.go(LONG)
    with pytest.raises(SubmitRefused):
        replan(world.runtime, key_of("one"))
    redo(world.store, key_of("one"))
    assert replan(world.runtime, key_of("one")).state is TransactionState.RELEASED
    world.consume("two")
    assert (world.holds(0), world.holds(1)) == ({1: 1}, {1: 1})


def test_a_target_that_is_not_there_is_said_before_anything_is_pinned(world: World) -> None:
    world.source.append()
    world.targets[0].drop()
    with pytest.raises(TargetNotFound):
        world.begin("one")
    assert world.open("two", world.writes(1)).windows[0].end == 1


def test_a_target_that_goes_away_meanwhile_is_said(world: World) -> None:
    world.source.append()
    world.zombie(world.open("one"))
    world.targets[0].drop()
    world.clock.go(SHORT)
    with pytest.raises(TargetNotFound):
        world.begin("one")
