"""V1, V7, I1–I3: whoever dies or comes late, each change stands in each target once, and then the offset moves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidemark.delivery.model.transactions import TransactionState
from tidemark.errors import CommitRefused, Fenced, JobsMayBeAlive, StreamLocked, SubmitRefused
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.streams.worker.begin import get_transaction
from tidemark.streams.worker.commit import commit
from tidemark.streams.worker.replan import replan
from tidemark.streams.worker.rollback import rollback
from tidemark.streams.worker.runtime import Runtime

from .world import LONG, SHORT, World, key_of


def test_a_consumption_writes_every_target_once_and_then_moves_the_offset(world: World) -> None:
    world.source.append()
    world.source.append()
    consumed = world.consume("one")
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1, 2: 1}, {1: 1, 2: 1}, 2)
    assert [(w.from_version, w.to_version) for w in consumed.result.windows] == [(0, 2)]
    assert consumed.result.rows == 4


def test_changes_made_while_a_window_is_open_come_with_the_next(world: World) -> None:
    world.source.append()
    transaction = world.open("one")
    world.source.append()
    world.finish(transaction)
    assert (world.holds(0), world.offset()) == ({1: 1}, 1)
    world.consume("two")
    assert (world.holds(0), world.offset()) == ({1: 1, 2: 1}, 2)


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4, 5])
def test_a_retry_finishes_what_a_dead_worker_left_at_any_step(world: World, steps: int) -> None:
    world.source.append()
    zombie = world.zombie(world.open("one"), steps)
    world.source.append()
    world.finish(world.open("one"))
    zombie.run()
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {1: 1}, 1)


def test_a_rolled_back_window_that_was_submitted_stays_pinned_v1(world: World) -> None:
    world.source.append()
    zombie = world.zombie(world.open("one"))
    world.source.append()
    rollback(world.store, key_of("one"))
    begun = world.begin("two")
    zombie.run()
    assert [w.to_version for result in begun.finished for w in result.windows] == [1]
    world.finish(begun.transaction)
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1, 2: 1}, {1: 1, 2: 1}, 2)


def test_a_zombie_that_writes_after_rollback_and_the_next_begin_writes_nothing(world: World) -> None:
    world.source.append()
    zombie = world.zombie(world.open("one"), steps=1)  # it has looked and means to write
    rollback(world.store, key_of("one"))
    world.source.append()
    transaction = world.begin("two").transaction
    zombie.run()
    world.finish(transaction)
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1, 2: 1}, {1: 1, 2: 1}, 2)


def test_a_window_that_was_never_submitted_is_free_after_rollback(world: World) -> None:
    world.source.append()
    stale = world.open("one")
    rollback(world.store, key_of("one"))
    world.source.append()
    transaction = world.open("two")
    assert (transaction.windows[0].start, transaction.windows[0].end) == (0, 2)
    with pytest.raises(SubmitRefused):
        world.submit(stale)
    assert world.drivers == []


def test_a_stale_copy_can_neither_submit_nor_commit_v7(world: World) -> None:
    world.source.append()
    stale = world.open("one")
    world.clock.go(SHORT)
    world.finish(world.open("two"))
    with pytest.raises(SubmitRefused):
        world.submit(stale)
    with pytest.raises(CommitRefused):
        commit(world.store, stale.key)
    assert (world.holds(0), world.offset(), len(world.drivers)) == ({1: 1}, 1, 1)


def test_commit_needs_evidence_for_every_statement_i3(world: World) -> None:
    world.source.append()
    transaction = world.open("one")
    world.zombie(transaction, steps=2)
    with pytest.raises(CommitRefused):
        commit(world.store, transaction.key)
    assert world.offset() == 0


def test_evidence_of_another_version_is_refused(world: World) -> None:
    world.source.append()
    transaction = world.open("one")
    evidence = world.run_unseen(transaction)
    for wrong in (
        replace(evidence[0], txn_version=99),
        replace(evidence[0], digest="0"),
        replace(evidence[0], table_id="another"),
        replace(evidence[0], number=9),
    ):
        with pytest.raises(CommitRefused):
            commit(world.store, transaction.key, [wrong, evidence[1]])
    assert world.offset() == 0
    commit(world.store, transaction.key, evidence)
    assert world.offset() == 1


def test_two_consumers_get_disjoint_windows_and_wait_for_each_other(world: World) -> None:
    world.source.append()
    one = world.open("one")
    world.source.append()
    with pytest.raises(StreamLocked) as locked:
        world.begin("two")
    assert locked.value.holder == str(key_of("one"))
    world.finish(one)
    two = world.open("two")
    assert (two.windows[0].start, two.windows[0].end) == (1, 2)
    world.finish(two)
    assert (world.holds(0), world.offset()) == ({1: 1, 2: 1}, 2)


def test_release_waits_for_jobs_and_then_fences_them_out(world: World) -> None:
    world.source.append()
    zombie = world.zombie(world.open("one"), steps=1)
    with pytest.raises(JobsMayBeAlive) as alive:
        replan(world.runtime, key_of("one"))
    assert alive.value.until == zombie.spec.deadline
    world.clock.go(LONG)
    released = replan(world.runtime, key_of("one"))
    assert released.state is TransactionState.RELEASED
    zombie.run()
    world.source.append()
    transaction = world.open("one", world.writes(1, 0))
    assert (transaction.windows[0].start, transaction.windows[0].end) == (0, 2)
    world.finish(transaction)
    assert (world.holds(0), world.holds(1)) == ({1: 1, 2: 1}, {1: 1, 2: 1})


def test_what_is_half_written_must_be_finished_with_the_stored_plan(world: World) -> None:
    world.source.append()
    world.zombie(world.open("one"), steps=2)  # target 0 has it
    world.clock.go(LONG)
    kept = replan(world.runtime, key_of("one"))
    assert kept.state is TransactionState.OPEN
    first, second = kept.plan.statements
    assert (first.txn_version, second.txn_version) == (1, 2)
    world.finish(world.open("one"))
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {1: 1}, 1)


def test_a_statement_that_met_a_fence_gets_a_new_version_v10(world: World) -> None:
    world.source.append()
    world.zombie(world.open("one"))
    world.clock.go(LONG)

    def die_after_fencing(spec: JobSpec) -> JobResult:
        world.run(spec)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replan(Runtime(world.store, run=die_after_fencing, paths=world.paths), key_of("one"))
    again = world.open("one")
    with pytest.raises(Fenced):
        world.submit(again)
    renumbered = world.open("one")
    assert [s.txn_version for s in renumbered.plan.statements] == [2, 1]
    with pytest.raises(Fenced):
        world.submit(renumbered)
    world.finish(world.open("one"))
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {1: 1}, 1)


def test_a_window_that_was_rolled_back_leaves_its_stored_state(world: World) -> None:
    world.source.append()
    world.open("one")
    rollback(world.store, key_of("one"))
    rollback(world.store, key_of("one"))
    rollback(world.store, key_of("never begun"))
    assert get_transaction(world.store, key_of("one")).state is TransactionState.RELEASED


def test_a_copy_from_before_the_release_does_not_pass_for_the_new_window_v7(world: World) -> None:
    world.source.append()
    stale = world.open("one")
    rollback(world.store, key_of("one"))
    world.source.append()
    fresh = world.open("one")
    with pytest.raises(SubmitRefused):
        world.submit(stale)
    world.finish(fresh)
    assert (world.holds(0), world.offset(), len(world.drivers)) == ({1: 1, 2: 1}, 2, 1)


def test_a_copy_from_before_a_takeover_starts_no_job_v7(world: World) -> None:
    world.source.append()
    stale = world.open("one")
    world.zombie(stale)
    rollback(world.store, key_of("one"))

    def run(spec: JobSpec) -> JobResult:
        with pytest.raises(SubmitRefused):
            world.submit(stale)
        return world.run(spec)

    world.begin_with(run, "two")
    assert (world.holds(0), world.offset(), len(world.drivers)) == ({1: 1}, 1, 2)


def test_a_fence_counts_only_if_no_job_came_meanwhile_i11(world: World) -> None:
    world.source.append()
    transaction = world.open("one")
    world.zombie(transaction)
    world.clock.go(LONG)

    def raced(spec: JobSpec) -> JobResult:
        answer = world.run(spec)
        world.zombie(transaction, steps=1)
        return answer

    with pytest.raises(SubmitRefused):
        replan(Runtime(world.store, run=raced, paths=world.paths), key_of("one"))
    assert get_transaction(world.store, key_of("one")).state is TransactionState.OPEN
