"""V2: the plan belongs to the window; another attempt runs the same plan or none."""

from __future__ import annotations

import pytest

from tidemark.delivery.model.transactions import TransactionState
from tidemark.errors import CommitRefused, InvalidArgument, PlanChanged, StreamLocked, SubmitRefused
from tidemark.streams.worker.begin import get_transaction
from tidemark.streams.worker.commit import commit
from tidemark.streams.worker.extend import extend
from tidemark.streams.worker.rollback import rollback
from tidemark.streams.worker.submit import submit

from .world import World, key_of


def test_an_attempt_with_another_plan_is_refused_and_the_stored_one_finishes_v2(world: World) -> None:
    world.source.append()
    zombie = world.zombie(world.open("one"), steps=1)
    for other in (world.writes(1), world.writes(1, 0), world.writes(0, 1, 1)):
        with pytest.raises(PlanChanged):
            world.begin("one", other)
    zombie.run()
    world.finish(world.open("one"))
    assert (world.holds(0), world.holds(1)) == ({1: 1}, {1: 1})


def test_an_attempt_on_other_streams_is_refused(world: World) -> None:
    world.stream("t", "other")
    world.source.append()
    world.zombie(world.open("one"), steps=1)
    with pytest.raises(PlanChanged):
        world.begin("one", streams=("s", "t"))


def test_an_attempt_gets_the_same_windows_versions_and_plan(world: World) -> None:
    world.source.append()
    first = world.open("one")
    world.source.append()
    second = world.open("one")
    assert (first.windows, first.plan) == (second.windows, second.plan)


def test_numbers_name_stream_statement_and_serial(world: World) -> None:
    world.source.append()
    transaction = world.open("one")
    uid = transaction.windows[0].stream_uid
    assert [(s.app_id, s.txn_version) for s in transaction.plan.statements] == [
        (f"tidemark/{uid}/1", 1),
        (f"tidemark/{uid}/2", 1),
    ]
    rollback(world.store, key_of("one"))
    assert {s.txn_version for s in world.open("one").plan.statements} == {2}


def test_each_task_of_a_group_runs_its_own_statement_and_commit_needs_all(world: World) -> None:
    world.source.append()
    transaction = world.open("one")
    assert [e.number for e in submit(world.runtime, transaction, only=(2,))] == [2]
    assert (world.holds(0), world.holds(1)) == ({}, {1: 1})
    with pytest.raises(CommitRefused):
        commit(world.store, transaction.key)
    submit(world.runtime, transaction, only=(1,))
    commit(world.store, transaction.key)
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {1: 1}, 1)
    with pytest.raises(InvalidArgument):
        submit(world.runtime, transaction, only=(7,))


def test_what_has_evidence_needs_no_second_job(world: World) -> None:
    world.source.append()
    transaction = world.open("one")
    world.submit(transaction)
    world.submit(world.open("one"))
    assert len(world.drivers) == 1
    commit(world.store, transaction.key)


def test_an_interactive_transaction_grows_until_it_is_submitted(world: World) -> None:
    world.stream("t", "other")
    world.source.append()
    world.sources["other"].append()
    key = world.open("one", writes=(), streams=()).key
    with pytest.raises(InvalidArgument):
        extend(world.runtime, key, writes=world.writes(0))
    extend(world.runtime, key, streams=["s"])
    world.source.append()
    extend(world.runtime, key, streams=["s", "t"], writes=world.writes(0))
    transaction = extend(world.runtime, key, writes=world.writes(1))
    assert [(w.stream_name, w.end) for w in transaction.windows] == [("s", 1), ("t", 1)]
    assert [s.number for s in transaction.plan.statements] == [1, 2]
    with pytest.raises(StreamLocked):
        world.begin("two", streams=("t",))
    world.submit(transaction)
    with pytest.raises(SubmitRefused):
        extend(world.runtime, key, streams=["t"])
    commit(world.store, key)
    assert (world.holds(0), world.holds(1, "t"), world.offset(), world.offset("t")) == ({1: 1}, {1: 1}, 1, 1)


def test_reading_without_a_statement_moves_nothing_r16(world: World) -> None:
    world.source.append()
    key = world.open("one", writes=()).key
    result = commit(world.store, key)
    assert (result.windows, world.offset()) == ((), 0)
    assert get_transaction(world.store, key).state is TransactionState.COMMITTED
    world.consume("two")
    assert world.offset() == 1
