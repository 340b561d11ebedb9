"""What may leave the event log of a replication is decided by what its targets have."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.control.replication_model import ME, Ends, WorkerDied, World
from tidemark.errors import ReplicationNotFound, ReplicationRefused, SourceUnreachable
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.replication.worker.definitions import begin_drop
from tidemark.replication.worker.objects import request_backfill
from tidemark.replication.worker.retention import expire_events
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.runtime import Runtime


@pytest.fixture
def world(replication_world: World) -> World:
    return replication_world


def captured(world: World, *names: str) -> None:
    world.source.commit(*(f"id of {name}" for name in names))
    world.capture()


def test_an_object_that_lags_holds_back_its_own_events_and_is_named(world: World) -> None:
    world.replicated("s.a", "s.b")
    captured(world, "s.a", "s.b", "s.a")
    captured(world, "s.a")
    world.apply("s.a")
    expired = world.expire()
    assert (expired.events, expired.held) == (2, {"s.b": 1})
    world.apply("s.b")
    assert world.expire().events == 1


def test_nothing_of_an_object_goes_while_a_backfill_of_it_may_be_at_work(world: World) -> None:
    world.replicated("s.a")
    captured(world, "s.a")
    captured(world, "s.a")
    world.apply("s.a")
    request_backfill(world.store, "r", ["s.a"], by=ME)
    with pytest.raises(WorkerDied):
        world.backfill("s.a", Ends.WORKER_DIED_BEFORE)
    assert world.expire().held == {"s.a": 1}


def test_the_newest_batch_stays_and_then_no_job_runs(world: World) -> None:
    world.replicated("s.a")
    captured(world, "s.a")
    world.apply("s.a")
    jobs = world.jobs
    assert (world.expire().events, world.jobs) == (0, jobs)


def test_the_time_before_which_events_go_is_that_of_the_store(world: World) -> None:
    world.replicated("s.a")
    captured(world, "s.a")
    captured(world, "s.a")
    asked: list[JobSpec] = []

    def run(spec: JobSpec) -> JobResult:
        asked.append(spec)
        return world.work(spec)

    done = expire_events(Runtime(world.store, run=run, paths=JobPaths("/w", "/x")), "r", keep=timedelta(days=7))
    assert done.before == world.clock() - timedelta(days=7)
    assert len(asked) == 1


def test_a_failure_of_the_job_is_raised_and_changes_nothing(world: World) -> None:
    world.replicated("s.a")
    captured(world, "s.a")
    captured(world, "s.a")
    with pytest.raises(SourceUnreachable):
        world.expire(Ends.ERROR)
    world.apply("s.a")


def test_one_that_is_dropped_or_not_there_is_named(world: World) -> None:
    world.replicated("s.a")
    begin_drop(world.store, "r", by=ME)
    with pytest.raises(ReplicationRefused, match="dropped"):
        world.expire()
    with pytest.raises(ReplicationNotFound):
        expire_events(Runtime(world.store, run=world.work, paths=JobPaths("/w", "/x")), "no", keep=timedelta(0))
