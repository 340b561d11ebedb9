"""One job applies the events of several objects; each has a result of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

import pytest

from tests.control.replication_model import ME, Ends, WorkerDied, World, at, columns, found
from tidemark.errors import JobDied, JobMayRunOn, ObjectFailed, SourceUnreachable, TargetMovedOn
from tidemark.model.codec import from_plain, to_plain
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.statements import TransactionKey
from tidemark.replication.model.jobs import AppliedObject, AppliedObjects, ApplyObjects, ApplyReport
from tidemark.replication.model.replication import Actor
from tidemark.replication.worker import objects, run_work, status
from tidemark.replication.worker.apply import ApplyOutcome, apply_objects
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.runtime import Runtime

KEY = TransactionKey("dag", "run-9", "prepare")


@pytest.fixture
def world(replication_world: World) -> World:
    """Events of s.a and s.b are captured; s.c has none."""
    replication_world.replicated("s.a", "s.b", "s.c")
    replication_world.source.commit("id of s.a", "id of s.b", "id of s.a")
    replication_world.capture()
    return replication_world


def test_all_that_have_events_go_in_one_job_and_the_others_in_none(world: World) -> None:
    before = world.jobs
    outcomes = world.apply_all()
    assert world.jobs == before + 1
    told = {name: one.report and one.report.events for name, one in outcomes.items()}
    assert told == {"s.a": 2, "s.b": 1, "s.c": None}
    assert {one.applied for one in world.objects()} == {world.replication.captured}
    world.apply_all()
    assert world.jobs == before + 1


def test_one_that_fails_keeps_its_problem_and_the_others_are_applied(world: World) -> None:
    failing = world.object("s.a")

    def run(spec: JobSpec) -> JobResult:
        answer = from_plain(AppliedObjects, world.work(spec).report)
        refused = AppliedObject(failing.uid, error=TargetMovedOn(target="t", found=9, number=2).to_record())
        kept = tuple(refused if one.uid == failing.uid else one for one in answer.objects)
        return JobResult(to_plain(AppliedObjects(kept)))

    outcomes = _applied(world, run)
    assert isinstance(outcomes["s.a"].error, TargetMovedOn)
    assert outcomes["s.b"].report is not None
    assert (world.object("s.a").problem is not None, world.object("s.b").problem) == (True, None)
    assert world.object("s.b").applied == world.replication.captured
    assert world.apply("s.a").report is not None  # the range that was left open
    assert world.object("s.a").problem is None


def test_a_job_that_dies_is_the_problem_of_each_of_its_objects(world: World) -> None:
    with pytest.raises(JobDied):
        world.apply_all(Ends.JOB_DIED_BEFORE)
    problems = {one.name.text: one.problem is not None for one in world.objects()}
    assert problems == {"s.a": True, "s.b": True, "s.c": False}
    alone = run_work.objects_alone(world.store, "r", key=KEY, active_runs=3, most=10)
    assert alone.names == ["s.a", "s.b"]


def test_a_result_that_the_job_leaves_out_is_a_failure_of_that_object_alone(world: World) -> None:
    def run(spec: JobSpec) -> JobResult:
        return JobResult(to_plain(AppliedObjects(from_plain(AppliedObjects, world.work(spec).report).objects[1:])))

    outcomes = _applied(world, run)
    assert ("has no result" in str(outcomes["s.a"].error), outcomes["s.b"].error) == (True, None)


def test_a_run_leaves_out_what_other_tasks_and_other_runs_apply(world: World) -> None:
    def during(spec: JobSpec) -> JobResult:
        held = from_plain(ApplyObjects, spec.request).objects
        assert [one.name.text for one in held] == ["s.a"]
        share = run_work.objects_together(world.store, "r", key=KEY, leave=["s.b"])
        assert (share.names, list(share.left)) == (["s.c"], ["s.a"])
        assert "dag/run-1" in share.left["s.a"]
        return world.work(spec)

    world.apply("s.a", run=during)


def test_objects_with_a_task_of_their_own_wait_for_a_backfill_and_share_tasks_beyond_the_limit(world: World) -> None:
    objects.request_backfill(world.store, "r", ["s.a", "s.b"], by=ME)
    alone = run_work.objects_alone(world.store, "r", key=KEY, active_runs=3, most=2)
    assert (alone.names, alone.tasks, alone.left) == (["s.a", "s.b"], ["s.a", "s.b"], {})
    shared = run_work.objects_alone(world.store, "r", key=KEY, active_runs=3, most=1)
    assert (shared.names, shared.tasks, shared.left) == (["s.a", "s.b"], [["s.a", "s.b"]], {})
    none = run_work.objects_alone(world.store, "r", key=KEY, active_runs=3, most=0)
    assert (none.names, set(none.left.values())) == ([], {"Airflow maps over 0 tasks at most; the next run does it"})
    assert run_work.waits_for_backfill(world.store, "r", key=KEY) == ("s.a", "s.b")

    def during(spec: JobSpec) -> JobResult:
        assert run_work.waits_for_backfill(world.store, "r", key=KEY) == ("s.b",)
        assert run_work.backfilled_by(world.store, "r", key=KEY) == ()
        assert run_work.backfilled_by(world.store, "r", key=TransactionKey("dag", "run-1", "x")) == ("s.a",)
        elsewhere = run_work.objects_alone(world.store, "r", key=KEY, active_runs=3, most=9)
        assert (elsewhere.names, list(elsewhere.left)) == (["s.b"], ["s.a"])
        busy = run_work.objects_alone(world.store, "r", key=KEY, active_runs=2, most=9)
        assert (busy.names, list(busy.left)) == ([], ["s.a", "s.b"])
        return world.work(spec)

    world.backfill("s.a", run=during)
    assert world.object("s.a").applied >= at(1)


def test_an_error_after_which_the_job_may_still_write_ends_no_write(world: World) -> None:
    def run(spec: JobSpec) -> JobResult:
        raise JobMayRunOn(key="k", server="sc://a", deadline="then")

    with pytest.raises(JobMayRunOn):
        _applied(world, run)
    assert {one.name.text: one.problem for one in world.objects()} == dict.fromkeys(("s.a", "s.b", "s.c"))
    other = TransactionKey("dag", "run-9", "apply")
    assert run_work.objects_together(world.store, "r", key=other).names == ["s.c"]


def test_a_result_that_was_not_asked_for_is_the_problem_of_its_object(world: World) -> None:
    wrong = world.object("s.a")

    def run(spec: JobSpec) -> JobResult:
        answer = from_plain(AppliedObjects, world.work(spec).report)
        beyond = ApplyReport(at(99), columns("id", "x"), 1, 1, {})
        objects = (AppliedObject(one.uid, beyond) if one.uid == wrong.uid else one for one in answer.objects)
        return JobResult(to_plain(AppliedObjects(tuple(objects))))

    outcomes = _applied(world, run)
    assert isinstance(outcomes["s.a"].error, ObjectFailed)
    assert list(status.describe(world.store, "r").failed) == ["s.a"]


def test_a_failed_backfill_counts_as_failed_until_nobody_can_try_it_again(world: World) -> None:
    objects.request_backfill(world.store, "r", ["s.a"], by=ME)
    with pytest.raises(SourceUnreachable):
        world.backfill("s.a", Ends.ERROR)
    assert list(status.describe(world.store, "r").failed) == ["s.a"]
    world.register(*(found(name, f"id of {name}") for name in ("s.b", "s.c")))
    assert status.describe(world.store, "r").failed == {}


def test_a_backfill_whose_worker_was_killed_is_nobodys_when_its_lease_is_over(world: World) -> None:
    objects.request_backfill(world.store, "r", ["s.a"], by=ME)
    with pytest.raises(WorkerDied):
        world.backfill("s.a", Ends.WORKER_DIED_BEFORE)
    mine = TransactionKey("dag", "run-1", "rounds")
    assert run_work.backfilled_by(world.store, "r", key=mine) == ("s.a",)
    world.clock.go(timedelta(days=1))
    assert run_work.backfilled_by(world.store, "r", key=mine) == ()


def _applied(world: World, run: Callable[[JobSpec], JobResult]) -> Mapping[str, ApplyOutcome]:
    runtime = Runtime(world.store, run=run, paths=JobPaths("/w", "/x"))
    uids = {one.uid: one.name.text for one in objects.to_apply(world.store, "r")}
    return {uids[uid]: one for uid, one in apply_objects(runtime, list(uids), by=Actor("me", "", "d/r/t/-1")).items()}
