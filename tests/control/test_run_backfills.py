"""A run captures as long as it backfills, and leaves later requests to the next run."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.control.replication_model import ME, Ends, World
from tidemark.errors import JobDied
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.statements import TransactionKey
from tidemark.replication.worker import objects
from tidemark.replication.worker.run_backfills import RunBackfills

KEY = TransactionKey("dag", "run-1", "rounds")


@pytest.fixture
def world(replication_world: World) -> World:
    """Both objects wait for a backfill of `dag/run-1`."""
    replication_world.start("s.a", "s.b")
    return replication_world


def of_the_run(world: World, *expected: str) -> RunBackfills:
    return RunBackfills(world.store, "r", key=KEY, expected=expected)


def test_an_object_that_is_requested_again_after_its_backfill_waits_for_the_next_run(world: World) -> None:
    run = of_the_run(world, "s.a", "s.b")
    assert (run.go_on(), run.of_the_next_run()) == (False, [])
    world.backfill("s.a")
    assert (run.go_on(), run.of_the_next_run()) == (False, [])
    objects.request_backfill(world.store, "r", ["s.a"], by=ME)
    assert (run.go_on(), run.of_the_next_run()) == (False, ["s.a"])


def test_a_backfill_that_failed_keeps_its_run_capturing_until_a_retry_could_have_begun(world: World) -> None:
    run = of_the_run(world, "s.a")
    _heard_of(world, run, "s.a", fails=True)
    world.clock.go(timedelta(minutes=6))
    assert run.go_on()
    _heard_of(world, run, "s.a", fails=True)
    world.clock.go(timedelta(minutes=9))
    assert run.go_on()
    world.clock.go(timedelta(minutes=2))
    assert not run.go_on()


def test_an_object_that_waits_for_its_turn_keeps_its_run_capturing(world: World) -> None:
    run = of_the_run(world, "s.a", "s.b")
    _heard_of(world, run, "s.a")
    world.clock.go(timedelta(minutes=5))
    assert run.go_on()


def test_a_run_whose_backfills_are_done_ends_within_a_minute(world: World) -> None:
    run = of_the_run(world, "s.a")
    _heard_of(world, run, "s.a")
    assert run.go_on()
    world.clock.go(timedelta(minutes=1))
    assert not run.go_on()


def _heard_of(world: World, run: RunBackfills, name: str, *, fails: bool = False) -> None:
    """The run looks while its backfill of the object is at work."""

    def during(spec: JobSpec) -> JobResult:
        assert run.go_on()
        if fails:
            raise JobDied(key="k", exit_code=1, tail="")
        return world.runner(Ends.WELL)(spec)

    try:
        world.backfill(name, run=during)
    except JobDied:
        assert fails
