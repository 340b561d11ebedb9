"""One job backfills many objects; each has a number, a position and a result of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest
import sqlalchemy as sa

from tests.control.replication_model import ME, Ends, WorkerDied, World, at
from tidemark.errors import JobDied, SourceUnreachable
from tidemark.model.codec import from_plain, to_plain
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.statements import TransactionKey
from tidemark.replication.model.jobs import BackfilledObject, BackfilledObjects
from tidemark.replication.model.replication import Actor, ObjectState
from tidemark.replication.worker import objects, run_work
from tidemark.replication.worker.backfill import BackfillOutcome
from tidemark.replication.worker.backfills import run_backfills
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.runtime import Runtime

NAMES = ("s.a", "s.b", "s.c")
Run = Callable[[JobSpec], JobResult]


@pytest.fixture
def world(replication_world: World) -> World:
    """Three objects wait for their first backfill."""
    replication_world.start(*NAMES)
    return replication_world


def backfilled(
    world: World, ends: Ends = Ends.WELL, *, by: Actor = ME, run: Run | None = None, looks: float = 15.0
) -> Mapping[str, BackfillOutcome]:
    """Of all, by name."""
    runtime = Runtime(world.store, run=run or world.runner(ends), paths=JobPaths("/w", "/x"))
    uids = {world.object(name).uid: name for name in NAMES}
    found = run_backfills(runtime, list(uids), by=by, cancel=lambda: None, looks=looks)
    return {uids[uid]: outcome for uid, outcome in found.items()}


def states(world: World) -> list[str]:
    return [world.object(name).state.value for name in NAMES]


def test_all_are_copied_by_one_job_and_then_applied(world: World) -> None:
    before = world.jobs
    outcomes = backfilled(world)
    assert world.jobs == before + 1
    assert [one.report is not None for one in outcomes.values()] == [True] * 3
    assert states(world) == ["completed"] * 3
    world.source.commit("id of s.b")
    world.capture()
    assert world.apply("s.b").report is not None


def test_a_copy_that_fails_stops_no_other_and_the_next_run_gives_it_a_task(world: World) -> None:
    def run(spec: JobSpec) -> JobResult:
        answer = from_plain(BackfilledObjects, world.work(spec).report)
        first, *others = answer.objects
        gone = SourceUnreachable(source="the source", problem="it went away").to_record()
        world.targets.pop(first.uid)  # nothing was written
        return JobResult(to_plain(BackfilledObjects((BackfilledObject(first.uid, error=gone), *others))))

    outcomes = backfilled(world, run=run)
    assert isinstance(outcomes["s.a"].error, SourceUnreachable)
    assert states(world) == ["failed", "completed", "completed"]
    key = TransactionKey("dag", "run-9", "prepare")
    assert run_work.objects_alone(world.store, "r", key=key, active_runs=3, most=9).tasks == ["s.a"]
    assert world.backfill("s.a").report is not None


@pytest.mark.parametrize("ends", [Ends.WORKER_DIED_BEFORE, Ends.WORKER_DIED_AFTER])
def test_a_worker_that_died_is_continued_by_its_retry(world: World, ends: Ends) -> None:
    with pytest.raises(WorkerDied):
        backfilled(world, ends)
    assert states(world) == ["active"] * 3
    numbers = [world.object(name).writes for name in NAMES]
    outcomes = backfilled(world)
    found = [one.report.found for one in outcomes.values() if one.report is not None]
    assert found == [ends is Ends.WORKER_DIED_AFTER] * 3
    assert [world.object(name).writes for name in NAMES] == numbers


def test_a_job_that_died_fails_each_of_its_objects_and_a_retry_finds_what_it_wrote(world: World) -> None:
    with pytest.raises(JobDied):
        backfilled(world, Ends.JOB_DIED_AFTER)
    assert states(world) == ["failed"] * 3
    outcomes = backfilled(world)
    assert [one.report.found for one in outcomes.values() if one.report is not None] == [True] * 3


def test_another_run_leaves_them_alone_while_the_leases_are_renewed(world: World) -> None:
    def during(spec: JobSpec) -> JobResult:
        other = Actor("another", run="dag/run-2/backfill/-1")
        assert {"is working on it" in str(one.reason) for one in backfilled(world, by=other).values()} == {True}
        return world.work(spec)

    assert {one.reason for one in backfilled(world, run=during).values()} == {None}


def test_one_that_is_begun_again_meanwhile_counts_for_nothing(world: World) -> None:
    def during(spec: JobSpec) -> JobResult:
        objects.request_backfill(world.store, "r", ["s.b"], by=ME, restart=True)
        return world.work(spec)

    outcomes = backfilled(world, run=during)
    assert outcomes["s.b"].reason is not None
    assert states(world) == ["completed", "pending", "completed"]


def test_a_second_run_answers_what_was_complete(world: World) -> None:
    backfilled(world)
    before = world.jobs
    assert [one.report is not None and one.report.found for one in backfilled(world).values()] == [True] * 3
    assert world.jobs == before


def statements_of(world: World, tables: Sequence[str]) -> int:
    """How many statements of the store a quiet apply of so many tables takes."""
    counted = 0

    def count(*_: object) -> None:
        nonlocal counted
        counted += 1

    world.start(*tables)
    for name in tables:
        world.backfill(name)
    world.source.commit("id of s.other")
    world.capture()
    sa.event.listen(sa.engine.Engine, "before_cursor_execute", count)
    try:
        outcomes = world.apply_all()
    finally:
        sa.event.remove(sa.engine.Engine, "before_cursor_execute", count)
    assert set(outcomes) == set(tables)
    assert {world.object(name).applied for name in tables} == {world.replication.captured}
    return counted


def test_a_quiet_table_costs_no_statement_of_its_own(replication_world: World) -> None:
    """The store's own statements of a transaction are the same for twelve tables: each is one of a few."""
    assert statements_of(replication_world, [f"s.t{number}" for number in range(12)]) <= 20


def test_a_problem_of_before_is_gone_with_the_next_quiet_run(world: World) -> None:
    backfilled(world)
    world.source.commit("id of s.a")
    world.capture()
    with pytest.raises(JobDied):
        world.apply_all(Ends.JOB_DIED_BEFORE)
    assert world.object("s.a").problem is not None
    world.apply_all()
    assert world.object("s.a").problem is None
    assert world.object("s.a").applied == world.replication.captured >= at(1)
    assert world.object("s.a").state is ObjectState.COMPLETED
