"""Drivers in a cluster outlive their worker: the next attempt finds them and waits, and each change comes once.

A server plays YARN, and drivers write real logs. Worker, store, lake and REST client are those of the release.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.played_yarn import NOBODY, PlayedYarn, played_yarn
from tidemark.errors import (
    ClusterUnreachable,
    DriverDied,
    DriverEndUnproven,
    DriverMayRunOn,
    Fenced,
    JobCancelled,
    JobLeftNoResult,
    StreamLocked,
)
from tidemark.hooks._cluster_files import ClusterFiles
from tidemark.hooks.settings import TidemarkSettings
from tidemark.hooks.yarn import ResourceManager
from tidemark.hooks.yarn_job import YarnDrivers
from tidemark.jobs.files import exists, write_result
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.yarn import driver_tag
from tidemark.streams.model.transaction_jobs import WRITE
from tidemark.streams.store import jobs, transactions
from tidemark.streams.worker.clusters import DriverGoesOn, LeftDriver
from tidemark.streams.worker.consume import consume
from tidemark.streams.worker.left_drivers import end_left, give_up_waiting, keep_application
from tidemark.streams.worker.outcomes import Consumed, Opened
from tidemark.streams.worker.runtime import Runtime

from .drivers import Driver, WorkerDied
from .world import LONG, SHORT, World, key_of


@dataclass
class Cluster:
    """A played YARN, and the drivers in it."""

    world: World
    yarn: PlayedYarn
    drivers: dict[str, Driver] = field(default_factory=dict)  # by application
    specs: dict[str, JobSpec] = field(default_factory=dict)

    @property
    def settings(self) -> TidemarkSettings:
        home = self.world.root / "home"
        return TidemarkSettings("", str(self.world.root / "lake"), home=home, jobs_root=home / "jobs")

    def seen_by_a_worker(
        self,
        *,
        leaves: bool = False,
        dies: Callable[[str], bool] = lambda point: False,
        awaited: str | None = None,
        patience: float = 0.0,
    ) -> Runtime:
        """The runtime of an attempt on a new worker. `dies`: whether it is killed at that point. `awaited`: the job for
        which its task has waited in the triggerer.
        """
        manager = ResourceManager((self.yarn.address,), seconds=0.5)
        files = ClusterFiles(self.settings)
        cluster = YarnDrivers(manager, files, pause=0.01, patience=patience, clock=self.world.clock)
        cluster.leaves = {WRITE.name} if leaves else ()

        def run(spec: JobSpec) -> JobResult:
            job_id = Path(spec.result_uri).name.partition(".")[0]
            if dies("before YARN has it"):
                self.specs[job_id] = files.spec(spec, job_id)
                raise WorkerDied
            application = self.begin(files.spec(spec, job_id), job_id)
            if dies("before the id is stored"):
                raise WorkerDied
            keep_application(self.world.store, job_id, application)
            if dies("while it waits"):
                raise WorkerDied
            driver = LeftDriver(job_id, application, str(spec.key), spec.deadline, own=True)
            return cluster.outcome(driver, application, leaves=leaves)

        return replace(self.world.runtime, run=run, host=cluster, cluster=cluster, awaited=awaited)

    def begin(self, spec: JobSpec, job_id: str) -> str:
        """A driver begins, as spark-submit lets it."""
        application = self.yarn.run(len(self.yarn.apps) + 1, tags=driver_tag(job_id))
        self.drivers[application] = self.world.driver(spec)
        return application

    def goes_on(self, application: str) -> None:
        """The driver runs to its end, unless it is told to stop."""
        driver = self.drivers[application]
        if exists(driver.spec.cancel_uri):
            write_result(driver.spec.result_uri, JobResult(error=JobCancelled(key=str(driver.spec.key)).to_record()))
            self.yarn.end(application, final_status="FAILED")
            return
        write_result(driver.spec.result_uri, driver.run())
        self.yarn.end(application)

    def consume(self, runtime: Runtime, run: str = "one") -> Consumed:
        for table in self.world.by_uri.values():
            table.reload()
        return consume(runtime, key=key_of(run), streams=("s",), writes=self.world.writes(), owner=f"worker of {run}")

    def left(self, point: str = "while it waits", steps: int = 0) -> str:
        """A worker died at the point; its application, empty if YARN has none."""
        with pytest.raises(WorkerDied):
            self.consume(self.seen_by_a_worker(dies=lambda here: here == point))
        for application, driver in self.drivers.items():
            for _ in range(steps):
                driver.step()
            return application
        return ""

    def holds(self) -> tuple[dict[int, int], dict[int, int]]:
        for table in self.world.by_uri.values():
            table.reload()
        return self.world.holds(0), self.world.holds(1)


@pytest.fixture
def world(sqlite_store: str, tmp_path: Path) -> Iterator[World]:
    """On SQLite alone: the store's part is a column and two queries, which tests of migrations run on PostgreSQL."""
    made = World(tmp_path, sqlite_store)
    made.stream()
    yield made
    made.store.close()


@pytest.fixture
def cluster(world: World) -> Iterator[Cluster]:
    world.source.append()
    with played_yarn() as yarn:
        yield Cluster(world, yarn)


ONCE = ({1: 1}, {1: 1})


@pytest.mark.parametrize("point", ["while it waits", "before the id is stored"])
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_the_retry_waits_for_the_driver_of_a_dead_worker_and_starts_no_other(
    cluster: Cluster, point: str, steps: int
) -> None:
    application = cluster.left(point, steps)
    cluster.goes_on(application)
    result = cluster.consume(cluster.seen_by_a_worker()).result
    assert list(cluster.drivers) == [application]
    assert len(result.evidence) == 2
    assert cluster.holds() == ONCE
    assert cluster.world.offset() == 1


def test_the_retry_waits_as_long_as_the_driver_runs(cluster: Cluster) -> None:
    application = cluster.left()
    waits = cluster.seen_by_a_worker(leaves=True)
    for _ in range(2):  # each look of a deferred task begins the attempt again
        with pytest.raises(DriverGoesOn) as left:
            cluster.consume(waits)
        assert left.value.application == application
        assert cluster.world.offset() == 0
    cluster.goes_on(application)
    cluster.consume(waits)
    assert list(cluster.drivers) == [application]
    assert cluster.holds() == ONCE


def test_a_task_that_waits_elsewhere_keeps_its_transaction_and_its_driver(cluster: Cluster) -> None:
    runtime = cluster.seen_by_a_worker(leaves=True)
    with pytest.raises(DriverGoesOn) as left:
        cluster.consume(runtime)
    cluster.goes_on(left.value.application)
    assert not cluster.consume(runtime).delivered_before
    assert cluster.consume(runtime).delivered_before
    assert (len(cluster.drivers), cluster.holds()) == (1, ONCE)


@pytest.mark.parametrize("says", ["nothing", "that it was fenced"])
def test_a_task_that_waits_elsewhere_fails_with_its_own_driver(cluster: Cluster, says: str) -> None:
    with pytest.raises(DriverGoesOn) as left:
        cluster.consume(cluster.seen_by_a_worker(leaves=True))
    application, job_id = left.value.application, left.value.job_id
    assert left.value.own
    fenced = Fenced(target="t", number=1, key="k")
    if says != "nothing":
        write_result(cluster.drivers[application].spec.result_uri, JobResult(error=fenced.to_record()))
    cluster.yarn.end(application, "FAILED", "FAILED", "Exit status: 137")
    resumed = cluster.seen_by_a_worker(leaves=True, awaited=job_id)
    with pytest.raises(DriverDied if says == "nothing" else Fenced):
        cluster.consume(resumed)
    assert isinstance(resumed.cluster, YarnDrivers)
    assert not resumed.cluster.leaves, "the attempt leaves no other driver"
    assert list(cluster.drivers) == [application]
    assert _unseen(cluster.world) == []
    with pytest.raises(DriverGoesOn) as again:  # the retry of Airflow
        cluster.consume(cluster.seen_by_a_worker(leaves=True))
    cluster.goes_on(again.value.application)
    cluster.consume(cluster.seen_by_a_worker(leaves=True, awaited=again.value.job_id))
    assert (len(cluster.drivers), cluster.holds()) == (2, ONCE)


def test_a_driver_of_an_earlier_attempt_that_fails_while_its_task_waits_elsewhere_is_replaced(cluster: Cluster) -> None:
    application = cluster.left()
    with pytest.raises(DriverGoesOn) as left:
        cluster.consume(cluster.seen_by_a_worker(leaves=True))
    assert (left.value.application, left.value.own) == (application, False)
    cluster.yarn.end(application, "FAILED", "FAILED", "Exit status: 137")
    runtime = cluster.seen_by_a_worker(leaves=True, awaited=left.value.job_id if left.value.own else None)
    with pytest.raises(DriverGoesOn) as left:
        cluster.consume(runtime)
    assert left.value.own
    cluster.goes_on(left.value.application)
    cluster.consume(cluster.seen_by_a_worker(leaves=True, awaited=left.value.job_id))
    assert (len(cluster.drivers), cluster.holds()) == (2, ONCE)


def test_a_task_that_waits_elsewhere_keeps_its_lease_until_it_is_given_up(cluster: Cluster) -> None:
    with pytest.raises(DriverGoesOn) as left:
        cluster.consume(cluster.seen_by_a_worker(leaves=True))
    cluster.world.clock.go(LONG - timedelta(hours=1, minutes=1))  # shortly before the deadline
    with pytest.raises(StreamLocked):
        cluster.consume(cluster.seen_by_a_worker(), "two")
    give_up_waiting(cluster.world.store, left.value.job_id)
    cluster.goes_on(left.value.application)
    finished = cluster.consume(cluster.seen_by_a_worker(), "two").finished
    assert [one.key for one in finished] == [key_of("one")]
    assert (len(cluster.drivers), cluster.holds()) == (1, ONCE)


def test_giving_up_a_wait_leaves_the_lease_of_the_attempt_that_has_begun_since(cluster: Cluster) -> None:
    with pytest.raises(DriverGoesOn) as left:
        cluster.consume(cluster.seen_by_a_worker(leaves=True))
    assert isinstance(cluster.world.begin("one"), Opened)
    give_up_waiting(cluster.world.store, left.value.job_id)
    with pytest.raises(StreamLocked):
        cluster.consume(cluster.seen_by_a_worker(), "two")
    give_up_waiting(cluster.world.store, "00000000-0000-0000-0000-000000000000")  # a job without a row


@pytest.mark.parametrize("run", ["one", "two"])
def test_a_wait_elsewhere_that_fails_ends_the_driver_of_its_own_and_of_a_taken_transaction(
    cluster: Cluster, run: str
) -> None:
    if run == "two":
        cluster.left()
        cluster.world.clock.go(SHORT)
    with pytest.raises(DriverGoesOn) as left:
        cluster.consume(cluster.seen_by_a_worker(leaves=True), run)
    end_left(cluster.seen_by_a_worker(), key_of("three"))
    assert cluster.yarn.apps[left.value.application]["state"] == "RUNNING"
    end_left(cluster.seen_by_a_worker(), key_of(run))
    assert cluster.yarn.apps[left.value.application]["state"] == "KILLED"
    assert _unseen(cluster.world) == []
    with pytest.raises(DriverGoesOn) as left:
        cluster.consume(cluster.seen_by_a_worker(leaves=True), "four")  # which need not wait
    cluster.goes_on(left.value.application)
    cluster.consume(cluster.seen_by_a_worker(awaited=left.value.job_id), "four")
    assert cluster.holds() == ONCE


def test_another_run_that_takes_over_waits_for_the_same_driver(cluster: Cluster) -> None:
    cluster.goes_on(cluster.left())
    cluster.world.clock.go(SHORT)
    finished = cluster.consume(cluster.seen_by_a_worker(), "two").finished
    assert [one.key for one in finished] == [key_of("one")]
    assert (len(cluster.drivers), cluster.holds()) == (1, ONCE)


def test_a_driver_that_yarn_gets_after_the_retry_stops_before_it_writes(cluster: Cluster) -> None:
    assert cluster.left("before YARN has it") == ""
    ((job_id, spec),) = cluster.specs.items()
    runtime = cluster.seen_by_a_worker(leaves=True)
    with pytest.raises(DriverGoesOn) as left:
        cluster.consume(runtime)
    late = cluster.begin(spec, job_id)  # spark-submit outlived its worker, too
    cluster.goes_on(late)
    assert cluster.holds() == ({}, {})
    cluster.goes_on(left.value.application)
    cluster.consume(runtime)
    assert cluster.holds() == ONCE


def test_a_driver_that_died_is_replaced_and_what_it_wrote_is_found(cluster: Cluster) -> None:
    application = cluster.left(steps=2)  # it has written the first target
    cluster.yarn.end(application, "FAILED", "FAILED", "the container was killed")
    runtime = cluster.seen_by_a_worker(leaves=True)
    with pytest.raises(DriverGoesOn) as left:
        cluster.consume(runtime)
    assert left.value.application != application
    cluster.goes_on(left.value.application)
    cluster.consume(runtime)
    assert (len(cluster.drivers), cluster.holds()) == (2, ONCE)


def test_a_driver_on_a_lost_node_is_told_to_stop_and_writes_nothing_twice(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemark.hooks.yarn_job._SECONDS_TO_PROVE", 0.05)
    lost = cluster.left(steps=2)
    cluster.yarn.apps[lost] |= {"state": "FAILED", "finalStatus": "FAILED"}  # and its container runs
    runtime = cluster.seen_by_a_worker(leaves=True)
    with pytest.raises(DriverGoesOn) as left:
        cluster.consume(runtime)
    assert exists(cluster.drivers[lost].spec.cancel_uri)
    cluster.goes_on(left.value.application)
    cluster.drivers[lost].run()  # it does not look at the marker in time
    cluster.consume(runtime)
    assert cluster.holds() == ONCE


def test_an_attempt_that_cannot_prove_the_end_says_so_and_keeps_the_job_alive(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemark.hooks.yarn_job._SECONDS_TO_PROVE", 0.05)
    runtime = cluster.seen_by_a_worker(leaves=True)
    with pytest.raises(DriverGoesOn) as left:
        cluster.consume(runtime)
    cluster.yarn.apps[left.value.application] |= {"state": "KILLED", "finalStatus": "KILLED"}
    driver = LeftDriver(left.value.job_id, left.value.application, "k", left.value.deadline)
    assert runtime.cluster is not None
    with pytest.raises(DriverEndUnproven, match="KILLED"):
        runtime.cluster.wait_for(driver)
    assert _unseen(cluster.world) == [left.value.job_id]


def test_a_killed_driver_whose_state_is_not_final_counts_as_alive(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemark.hooks.yarn_job._SECONDS_TO_END", 0.05)
    application = cluster.left()
    cluster.yarn.kills = False
    runtime = cluster.seen_by_a_worker()
    assert isinstance(runtime.cluster, YarnDrivers)
    runtime.cluster.stop("cancelled")
    with pytest.raises(DriverMayRunOn, match="RUNNING"):
        cluster.consume(runtime)
    assert not runtime.cluster.end(_unseen(cluster.world)[0])
    assert (list(cluster.drivers), cluster.holds()) == ([application], ({}, {}))
    cluster.goes_on(application)
    with pytest.raises(DriverGoesOn):
        cluster.consume(cluster.seen_by_a_worker(leaves=True))  # now a new one may begin
    assert len(cluster.drivers) == 2


def test_without_an_answer_of_yarn_no_other_driver_begins(cluster: Cluster) -> None:
    application = cluster.left()
    cluster.yarn.silent = True
    with pytest.raises(ClusterUnreachable, match="A retry finds them"):
        cluster.consume(cluster.seen_by_a_worker())
    assert list(cluster.drivers) == [application]
    cluster.yarn.silent = False
    cluster.goes_on(application)
    cluster.consume(cluster.seen_by_a_worker())
    assert (len(cluster.drivers), cluster.holds()) == (1, ONCE)


def test_the_retry_waits_until_another_manager_is_active(cluster: Cluster) -> None:
    application = cluster.left()
    cluster.goes_on(application)
    cluster.yarn.moved_to = NOBODY
    active = threading.Timer(0.3, setattr, (cluster.yarn, "moved_to", ""))
    active.start()
    cluster.consume(cluster.seen_by_a_worker(patience=30.0))
    active.join()
    assert (len(cluster.drivers), cluster.holds()) == (1, ONCE)


def test_an_application_that_yarn_has_forgotten_is_believed_by_its_result_alone(cluster: Cluster) -> None:
    application = cluster.left()
    cluster.goes_on(application)
    del cluster.yarn.apps[application]
    cluster.consume(cluster.seen_by_a_worker())
    assert (len(cluster.drivers), cluster.holds()) == (1, ONCE)


@pytest.mark.parametrize(
    "text", ['{"report": {"evid', '{"answer": 1}', "7", "[" * 100_000, '{"report": {"written": []}}']
)
@pytest.mark.parametrize("own", [False, True])
def test_a_result_that_cannot_be_read_leaves_the_work_to_a_job_that_finds_the_marks(
    cluster: Cluster, text: str, own: bool, caplog: pytest.LogCaptureFixture
) -> None:
    application = cluster.left()
    cluster.goes_on(application)
    (job_id,) = _unseen(cluster.world)
    Path(cluster.drivers[application].spec.result_uri).write_text(text)
    runtime = cluster.seen_by_a_worker(leaves=True, awaited=job_id if own else None)
    if own and 'report": {"written' not in text:
        with pytest.raises(JobLeftNoResult):
            cluster.consume(runtime)
    with pytest.raises(DriverGoesOn) as left:
        cluster.consume(cluster.seen_by_a_worker(leaves=True, awaited=job_id if own else None))
    cluster.goes_on(left.value.application)
    cluster.consume(cluster.seen_by_a_worker(awaited=left.value.job_id))
    assert (len(cluster.drivers), cluster.holds()) == (2, ONCE)
    assert "cannot be read" in caplog.text or "of another release" in caplog.text


@pytest.mark.parametrize("restarted", [False, True])
def test_a_manager_that_began_after_the_job_may_have_forgotten_its_driver(cluster: Cluster, restarted: bool) -> None:
    application = cluster.left("before the id is stored")
    lost, _ = cluster.drivers.pop(application), cluster.yarn.apps.pop(application)
    ClusterFiles(cluster.settings).put(lost.spec, _unseen(cluster.world)[0])
    cluster.yarn.manager_started = 4 * 10**12 if restarted else 0
    runtime = cluster.seen_by_a_worker(leaves=True)
    assert runtime.host.end(_unseen(cluster.world)[0]) is not restarted
    with pytest.raises(DriverGoesOn) as left:
        cluster.consume(runtime)
    assert (len(_unseen(cluster.world)) == 2) is restarted, "it counts as alive"
    assert exists(lost.spec.cancel_uri)
    cluster.goes_on(left.value.application)
    lost.run()
    cluster.consume(runtime)
    assert cluster.holds() == ONCE


def test_a_driver_that_is_late_is_ended_and_the_next_one_is_not(cluster: Cluster) -> None:
    late = cluster.left()
    cluster.world.clock.go(LONG)
    runtime = cluster.seen_by_a_worker(leaves=True)
    with pytest.raises(DriverGoesOn) as left:
        cluster.consume(runtime)
    assert cluster.yarn.apps[late]["state"] == "KILLED"
    assert left.value.application != late
    cluster.goes_on(left.value.application)
    cluster.consume(runtime)
    assert cluster.holds() == ONCE


def test_a_job_is_ended_by_any_worker_once_its_node_has_removed_it(cluster: Cluster) -> None:
    application = cluster.left()
    runtime = cluster.seen_by_a_worker()
    (job_id,) = _unseen(cluster.world)
    assert runtime.host.end(job_id)
    assert cluster.yarn.apps[application]["state"] == "KILLED"
    assert exists(cluster.drivers[application].spec.cancel_uri)
    assert runtime.host.end("00000000-0000-0000-0000-000000000000")  # one that never began


def test_a_driver_that_dies_tells_yarns_diagnostics_and_its_last_lines(cluster: Cluster) -> None:
    application = cluster.left()
    cluster.yarn.end(application, "FAILED", "FAILED", "Exit status: 137")
    runtime = cluster.seen_by_a_worker()
    assert runtime.cluster is not None
    (job_id,) = _unseen(cluster.world)
    with pytest.raises(DriverDied, match="Exit status: 137") as died:
        runtime.cluster.wait_for(LeftDriver(job_id, application, "k", cluster.world.clock()))
    assert "the end of stdout" in str(died.value)


def _unseen(world: World) -> list[str]:
    stored = world.store.read(lambda connection: transactions.current(connection, key_of("one")))
    assert stored is not None
    return [job.id for job in world.store.read(lambda connection: jobs.unseen(connection, stored.id))]
