"""Retention of a change stream: a job only where records are due, and only for what may go."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from tests.control.change_stream_model import ChangeStreamWorld
from tests.control.test_pruning import let_prune
from tests.control.test_waves_behaviour import Readers, loaded
from tidemark.change_streams.model.jobs import EXPIRE_CHANGE_LOG, ExpireChangeLog
from tidemark.change_streams.store.schema import capture_batches
from tidemark.change_streams.worker.definitions import set_options
from tidemark.change_streams.worker.groups import reset_group
from tidemark.change_streams.worker.retention import LogExpired, expire
from tidemark.errors import ChangeStreamNotFound, PartitionExpired, TidemarkError
from tidemark.model.codec import from_plain
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.pruning import prune
from tidemark.streams.worker.runtime import Runtime

DAY = timedelta(days=1)


@dataclass
class Log:
    """What stands in for the job: it keeps the times up to which it was given."""

    given: list[datetime | None] = field(default_factory=list)
    broken: bool = False

    def __call__(self, spec: JobSpec) -> JobResult:
        assert spec.kind == EXPIRE_CHANGE_LOG.name
        self.given.append(from_plain(ExpireChangeLog, spec.request).stream.expired_until)
        if self.broken:
            return JobResult(error=TidemarkError(message="no").to_record())
        return JobResult({"until": None, "rows": 7})


def expired(world: ChangeStreamWorld, log: Log) -> LogExpired:
    return expire(Runtime(world.store, run=log, paths=JobPaths("file:///w", "file:///e")), "s")


@pytest.fixture
def readers(world: ChangeStreamWorld) -> Readers:
    return Readers(world)


def test_no_job_runs_where_nothing_is_due(readers: Readers) -> None:
    world, log = readers.world, Log()
    world.batch()  # without records
    assert expired(world, log).until == world.stream.created_at
    loaded(world, *world.active())
    world.clock.go(timedelta(hours=23))
    world.opened()
    assert expired(world, log).rows == 0
    assert log.given == []


def test_the_job_gets_the_time_up_to_which_it_expires_and_runs_once(readers: Readers) -> None:
    world, log = readers.world, Log()
    loaded(world, *world.active())
    readers.wave()
    world.clock.go(2 * DAY)
    world.opened()
    readers.commit()
    done = expired(world, log)
    assert (done.until, done.rows, done.forgotten.chunks) == (world.clock.now - DAY, 7, 2)
    assert log.given == [done.until]
    world.clock.go()
    assert expired(world, log).rows == 0
    assert len(log.given) == 1
    loaded(world, *world.active())
    assert [chunk.number for chunk in readers.wave()[0].chunks] == [1, 1]


def test_a_job_that_failed_runs_again_and_nothing_is_handed_out_meanwhile(readers: Readers) -> None:
    world, log = readers.world, Log(broken=True)
    loaded(world, *world.active())
    world.clock.go(2 * DAY)
    world.opened()
    with pytest.raises(TidemarkError):
        expired(world, log)
    with pytest.raises(PartitionExpired):
        readers.plan()
    log.broken = False
    assert (expired(world, log).rows, len(log.given)) == (7, 2)


def test_a_group_that_is_behind_is_refused_until_it_is_reset(readers: Readers) -> None:
    world, log = readers.world, Log()
    loaded(world, *world.active())
    world.clock.go(2 * DAY)
    world.opened()
    for _ in range(2):
        assert expired(world, log).forgotten.partitions == 0
        with pytest.raises(PartitionExpired, match="consumer group 'g'"):
            readers.plan()
    reset_group(world.store, "s", "g", "earliest")
    assert expired(world, log).until == world.clock.now - DAY
    assert len(log.given) == 1


def test_a_stream_that_does_not_exist_has_nothing_to_expire(world: ChangeStreamWorld) -> None:
    with pytest.raises(ChangeStreamNotFound):
        expire(Runtime(world.store, run=Log(), paths=JobPaths("file:///w", "file:///e")), "nobody")


@pytest.fixture
def pruned_readers(readers: Readers, request: pytest.FixtureRequest) -> Readers:
    let_prune(readers.store, request)
    return readers


def batches(world: ChangeStreamWorld) -> list[int]:
    of = capture_batches.c
    return list(world.store.read(lambda c: c.execute(sa.select(of.number).order_by(of.number)).scalars().all()))


@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_of_a_log_that_does_not_expire_the_store_keeps_what_can_be_read(pruned_readers: Readers, at_once: int) -> None:
    readers = pruned_readers
    world = readers.world
    for _ in range(5):
        loaded(world, *world.active())
        readers.wave()
    world.clock.go(10 * DAY)
    loaded(world, *world.active())
    readers.wave()
    keep = 3 * DAY
    dropped = prune(world.store, keep, at_once=at_once, pause=lambda _: None)
    assert (dropped["batches of change streams"], batches(world)) == (4, [4, 5])
    assert prune(world.store, keep, pause=lambda _: None)["batches of change streams"] == 0
    log = Log()
    world.clock.go(2 * DAY)
    world.opened()
    assert (expired(world, log).rows, len(log.given)) == (7, 1)  # an expiry still knows that there are records
    loaded(world, *world.active())
    assert [chunk.expected for chunk in readers.wave()[0].chunks] == [5, 5]


def test_a_longer_retention_brings_nothing_back_that_was_forgotten(pruned_readers: Readers) -> None:
    readers = pruned_readers
    world = readers.world
    for _ in range(3):
        loaded(world, *world.active())
        readers.wave()
        world.clock.go()
    world.clock.go(2 * DAY)
    loaded(world, *world.active())
    readers.wave()
    prune(world.store, DAY, pause=lambda _: None)
    set_options(world.store, "s", replace(world.stream.options, retention=7 * DAY))
    reset_group(world.store, "s", "g", "earliest")
    planned = readers.plan().chunks
    assert min(chunk.start.at for chunk in planned) >= (world.stream.expired_until or world.clock.now)


def test_a_group_that_lags_holds_its_batches_back(pruned_readers: Readers) -> None:
    world = pruned_readers.world
    for _ in range(3):
        loaded(world, *world.active())
    world.clock.go(10 * DAY)
    loaded(world, *world.active())
    assert prune(world.store, DAY, pause=lambda _: None)["batches of change streams"] == 0
    assert len(batches(world)) == 4
