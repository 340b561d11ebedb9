"""V3, I10: a retry or a clear after the commit announces the stored result and opens no window."""

from __future__ import annotations

import pytest

from tidemark.delivery.model.transactions import TransactionState
from tidemark.streams.worker.begin import get_transaction
from tidemark.streams.worker.commit import commit
from tidemark.streams.worker.rollback import rollback
from tidemark.streams.worker.submit import submit

from .world import World, key_of


def test_a_retry_after_the_commit_gets_the_stored_result_v3(world: World) -> None:
    world.source.append()
    result = world.consume("one").result
    world.source.append()
    again = world.delivered("one")
    assert (again.result, again.fresh, world.offset(), len(world.drivers)) == (result, False, 1, 1)
    assert world.consume("one").delivered_before


def test_a_retry_needs_neither_source_nor_targets(world: World) -> None:
    world.source.append()
    result = world.consume("one").result
    world.source.drop()
    world.targets[0].drop()
    assert world.delivered("one").result == result


def test_commit_may_be_called_again(world: World) -> None:
    world.source.append()
    transaction = world.open("one")
    result = world.finish(transaction)
    assert commit(world.store, transaction.key) == result
    assert [m.to_version for m in world.history()] == [0, 1]


def test_a_group_that_is_cleared_after_its_commit_runs_no_job(world: World) -> None:
    world.source.append()
    world.finish(world.open("one"))
    committed = get_transaction(world.store, key_of("one"))
    evidence = submit(world.runtime, committed, only=(2,))
    assert ([e.number for e in evidence], len(world.drivers)) == ([2], 1)


def test_rollback_of_a_committed_key_does_nothing(world: World) -> None:
    world.source.append()
    world.consume("one")
    rollback(world.store, key_of("one"))
    assert get_transaction(world.store, key_of("one")).state is TransactionState.COMMITTED
    assert world.offset() == 1


@pytest.mark.parametrize("changes", [0, 1])
def test_a_window_without_changes_is_stored_under_its_key_too(world: World, changes: int) -> None:
    for _ in range(changes):
        world.source.optimize()
    first = world.delivered("one")
    world.source.append()
    again = world.delivered("one")
    assert (first.fresh, again.fresh, again.result) == (True, False, first.result)
    assert (world.offset(), world.drivers) == (changes, [])
