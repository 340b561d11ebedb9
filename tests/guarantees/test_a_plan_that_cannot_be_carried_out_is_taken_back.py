"""A plan that fails for good and has left no trace does not bind its key: the corrected one just runs (step 18, V2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tidemark.delivery.model.transactions import TransactionState
from tidemark.errors import (
    ConstraintViolated,
    JobDied,
    MissingMergeKey,
    PlanChanged,
    SparkNotFound,
    StatementRefused,
    SubmitRefused,
    TidemarkError,
    TransactionNotFound,
)
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.statements import PlannedWrite, WriteAs
from tidemark.model.streams import TableRef
from tidemark.streams.worker.begin import get_transaction
from tidemark.streams.worker.consume import consume
from tidemark.streams.worker.finish import finish
from tidemark.streams.worker.replay import find_run, replay
from tidemark.streams.worker.rollback import rollback
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.sources import open_table
from tidemark.streams.worker.streams import advance_stream, open_transaction
from tidemark.streams.worker.unwritten import let_go, release_unwritten

from .world import LONG, SHORT, World, key_of

MISSING = MissingMergeKey(target="target0", problem="the stream has no column order_id")
BROKEN = ConstraintViolated(problem="n > 0")


def fails(error: TidemarkError) -> Callable[[JobSpec], JobResult]:
    """A job that writes nothing and says why."""
    return lambda spec: JobResult(error=error.to_record())


def typo(world: World, *targets: int) -> tuple[PlannedWrite, ...]:
    return tuple(replace(write, keys=("order_id",)) for write in world.writes(*targets))


def fail(world: World, error: TidemarkError = MISSING, run: str = "one", *targets: int) -> None:
    with pytest.raises(type(error)):
        consume(
            Runtime(world.store, run=fails(error), paths=world.paths),
            key=key_of(run),
            streams=("s",),
            writes=typo(world, *targets),
            owner=f"worker of {run}",
        )


def half_written(world: World) -> None:
    """The first target has its part, the second has not, and the job has ended."""
    transaction = world.open("one", typo(world))
    driver = world.driver

    def after_one(spec: JobSpec) -> JobResult:
        job = driver(spec)
        job.step()
        job.step()
        job.fail()
        return JobResult(error=BROKEN.to_record())

    with pytest.raises(ConstraintViolated):
        world.submit(transaction, after_one)


def test_after_a_permanent_failure_the_corrected_run_just_runs(world: World) -> None:
    world.source.append()
    fail(world)
    with pytest.raises(TransactionNotFound):
        open_transaction(world.store, "s")
    assert get_transaction(world.store, key_of("one")).state is TransactionState.RELEASED
    world.source.append()
    world.consume("one")
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1, 2: 1}, {1: 1, 2: 1}, 2)


def test_after_a_permanent_failure_another_run_and_the_user_have_the_stream(world: World) -> None:
    world.source.append()
    fail(world)
    advance_stream(world.store, "s", 1, "ann", "skip")
    world.source.append()
    world.consume("two")
    assert (world.holds(0), world.offset()) == ({2: 1}, 2)


def test_a_failure_that_may_pass_keeps_the_window_for_the_retry(world: World) -> None:
    world.source.append()
    fail(world, JobDied(key="k", exit_code=1, tail=""))
    kept = open_transaction(world.store, "s").windows
    world.source.append()
    assert world.open("one", typo(world)).windows == kept


@pytest.mark.parametrize("error", [BROKEN, JobDied(key="k", exit_code=1, tail="")])
def test_another_plan_of_the_same_key_begins_anew_whatever_the_failure_was(world: World, error: TidemarkError) -> None:
    world.source.append()
    fail(world, error)
    world.source.append()
    world.consume("one", 1)
    assert (world.holds(0), world.holds(1), world.offset()) == ({}, {1: 1, 2: 1}, 2)


def test_a_plan_that_was_never_submitted_binds_nobody(world: World) -> None:
    world.stream("t", "other")
    world.source.append()
    stale = world.open("one", typo(world))
    transaction = world.open("one", streams=("s", "t"))
    assert [window.stream_name for window in transaction.windows] == ["s", "t"]
    with pytest.raises(SubmitRefused):
        world.submit(stale)
    world.finish(transaction)
    assert (world.holds(0), world.holds(1)) == ({1: 1}, {1: 1})


def test_what_is_half_written_is_not_taken_back_and_the_message_says_what_differs_and_who_has_what(
    world: World,
) -> None:
    world.source.append()
    half_written(world)
    assert not let_go(world.store, key_of("one"))
    with pytest.raises(PlanChanged) as changed:
        world.begin("one")
    first, second = (target.uri for target in world.targets)
    assert f"keys of {first}: order_id → none; keys of {second}: order_id → none" in str(changed.value)
    assert f"{first} holds its part, {second} holds nothing of it" in str(changed.value)
    assert "airflow tidemark streams finish s" in str(changed.value)
    world.finish(world.open("one", typo(world)))
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {1: 1}, 1)


def test_only_what_is_not_written_may_be_replaced_and_gets_numbers_of_its_own(world: World) -> None:
    """As in a group whose second writer has a typo, when the first one has written."""
    world.source.append()
    half_written(world)
    first, second = typo(world)
    stale = world.open("one", [first, second])
    world.source.append()
    corrected = [first, replace(second, keys=("id",))]
    transaction = world.open("one", corrected)
    assert transaction.windows == stale.windows
    kept, new = transaction.plan.statements
    assert (kept, new.write.keys, new.txn_version) == (stale.plan.statements[0], ("id",), kept.txn_version + 1)
    with pytest.raises(SubmitRefused):
        world.submit(stale)
    world.finish(world.open("one", corrected))
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {1: 1}, 1)


def test_statements_that_are_not_written_may_go_and_others_come(world: World) -> None:
    world.source.append()
    half_written(world)
    first, second = typo(world)
    assert len(world.open("one", [first]).plan.statements) == 1
    assert len(world.open("one", [first, second, second]).plan.statements) == 3
    world.finish(world.open("one", [first]))
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {}, 1)


def test_what_is_written_keeps_its_place_in_the_plan(world: World) -> None:
    world.source.append()
    half_written(world)
    first, second = typo(world)
    for other in ([second], [second, first], [replace(first, keys=("id",)), second]):
        with pytest.raises(PlanChanged):
            world.begin("one", other)
    world.finish(world.open("one", [first, second]))
    assert (world.holds(0), world.holds(1)) == ({1: 1}, {1: 1})


def test_half_written_and_on_other_streams_is_refused_too(world: World) -> None:
    world.stream("t", "other")
    world.source.append()
    half_written(world)
    with pytest.raises(PlanChanged, match="streams: s → s, t"):
        world.begin("one", typo(world), streams=("s", "t"))


def test_while_a_job_may_write_nothing_is_taken_back(world: World) -> None:
    """V1: the worker is gone without a word; until the job's deadline nobody knows."""
    world.source.append()
    zombie = world.zombie(world.open("one", typo(world)), steps=1)
    world.clock.go(SHORT)
    assert not let_go(world.store, key_of("one"))
    with pytest.raises(PlanChanged, match="nobody saw end"):
        world.begin("one")
    zombie.run()
    with pytest.raises(PlanChanged):
        world.begin("one")
    world.finish(world.open("one", typo(world)))
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {1: 1}, 1)


def test_after_its_deadline_a_job_that_nobody_saw_end_is_fenced_off_first(world: World) -> None:
    world.source.append()
    zombie = world.zombie(world.open("one", typo(world)), steps=1)
    world.clock.go(LONG)
    transaction = world.open("one")
    assert [driver.spec.kind for driver in world.drivers[1:]] == ["fence"]
    zombie.run()
    world.finish(transaction)
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {1: 1}, 1)


def test_a_target_that_was_made_anew_or_taken_away_may_have_had_its_part(world: World) -> None:
    world.source.append()
    fail(world, BROKEN)
    world.targets[0].recreate()
    with pytest.raises(PlanChanged, match=r"not known whether .* \(changed\)"):
        world.begin("one")
    world.targets[0].drop()
    with pytest.raises(PlanChanged, match=r"not known whether .* \(TargetNotFound"):
        world.begin("one")
    assert not let_go(world.store, key_of("one"))


def test_a_job_that_is_submitted_while_the_targets_are_looked_at_keeps_its_window(world: World) -> None:
    world.source.append()
    transaction = world.open("one")
    with pytest.raises(ConstraintViolated):
        world.submit(transaction, fails(BROKEN))
    looks = []

    def late(table: TableRef | str) -> DeltaLog:
        """Another attempt of the same key submits when the last target has been opened."""
        log = open_table(table)
        looks.append(log.head())
        if len(looks) == len(transaction.plan.statements):
            world.zombie(transaction)
        return log

    with pytest.raises(SubmitRefused, match="changed while"):
        release_unwritten(world.store, key_of("one"), tables=late)
    world.finish(world.open("one"))
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {1: 1}, 1)


def test_the_next_run_takes_back_what_can_never_be_finished_and_goes_on(world: World) -> None:
    """The plan broke on a row, so a retry might have helped; its own key never came back."""
    world.source.append()
    fail(world, BROKEN)
    world.source.append()
    failing = fails(BROKEN)

    def run(spec: JobSpec) -> JobResult:
        return failing(spec) if spec.key == key_of("one") else world.run(spec)

    begun = world.begin_with(run, "two")
    assert begun.finished == ()
    world.finish(begun.transaction)
    assert (world.holds(0), world.offset()) == ({1: 1, 2: 1}, 2)
    world.source.append()
    world.consume("one", 0)
    assert (world.holds(0), world.offset()) == ({1: 1, 2: 1, 3: 1}, 3)


@pytest.mark.parametrize("error", [SparkNotFound(command="pip"), StatementRefused(problem="not here", sql="m:f")])
def test_what_only_this_worker_cannot_do_is_left_to_its_own_task(world: World, error: TidemarkError) -> None:
    """A worker without Spark or without the function's module says nothing of the plan."""
    by_function = WriteAs.FUNCTION if isinstance(error, StatementRefused) else WriteAs.APPEND
    writes = [replace(write, write_as=by_function) for write in world.writes()]
    world.source.append()
    transaction = world.open("one", writes)
    with pytest.raises(ConstraintViolated):
        world.submit(transaction, fails(BROKEN))
    rollback(world.store, key_of("one"))
    with pytest.raises(type(error)):
        world.begin_with(fails(error), "two")
    assert open_transaction(world.store, "s").key == key_of("one")


def test_a_request_to_finish_never_takes_back(world: World) -> None:
    world.source.append()
    fail(world, BROKEN)
    with pytest.raises(ConstraintViolated):
        finish(Runtime(world.store, run=fails(BROKEN), paths=world.paths), "s", by=key_of("by hand"), owner="ann")
    assert open_transaction(world.store, "s").key == key_of("one")


def test_what_is_half_written_and_fails_again_stays_and_the_error_says_whose_it_is(world: World) -> None:
    world.source.append()
    half_written(world)
    world.clock.go(SHORT)
    with pytest.raises(ConstraintViolated) as broken:
        world.begin_with(fails(BROKEN), "two")
    assert str(key_of("one")) in broken.value.__notes__[0]
    assert world.begin("two").finished[0].key == key_of("one")
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {1: 1}, 1)


def test_a_replay_with_a_typo_is_taken_back_too(world: World) -> None:
    world.source.append()
    world.consume("first", 0)
    past = find_run(world.store, "s", "first")

    def again(run: Callable[[JobSpec], JobResult], *writes: PlannedWrite) -> None:
        replay(
            Runtime(world.store, run=run, paths=world.paths), past, key=key_of("again"), writes=writes, owner="worker"
        )

    with pytest.raises(ConstraintViolated):
        again(fails(BROKEN), *typo(world, 1))
    again(world.run, *world.writes(1))
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {1: 1}, 1)
