"""A worker is killed before it wrote anything, then its DAG is edited: the cleared task runs with the new plan.

A driver that lives on without its worker is ended first. If it has written, PlanChanged says what, and where.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.guarantees.killed_processes import script_of
from tests.table_templates import put_table
from tests.tiers import nightly, some
from tidemark.control.store import ControlStore
from tidemark.delivery.model.transactions import TransactionState
from tidemark.errors import PlanChanged, SubmitRefused
from tidemark.failpoints import KILL_AT
from tidemark.hooks._job_files import HELD, WORKER, alive, worked_for
from tidemark.hooks._jobs_of_host import JobsOfHost
from tidemark.hooks.settings import settings_from
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.statements import PlannedWrite
from tidemark.model.streams import StreamMode, TableRef
from tidemark.streams.store import jobs, transactions
from tidemark.streams.worker.begin import get_transaction
from tidemark.streams.worker.consume import consume
from tidemark.streams.worker.streams import create_stream, get_stream
from tidemark.streams.worker.unseen_jobs import end_unseen
from tidemark.warm_spark.locks import is_held

from .drivers import Driver
from .world import World, key_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = "tests/guarantees/test_a_killed_workers_plan_was_edited.py"
JOB = "00000000-0000-4000-8000-000000000001"


@dataclass
class OneHost:
    """All drivers of the world run on it. `stubborn`: they do not end."""

    world: World
    name: str | None = "here"
    stubborn: bool = False
    asked: list[str] = field(default_factory=list)

    def end(self, job_id: str) -> bool:
        self.asked.append(job_id)
        if not self.stubborn:
            for driver in self.drivers(job_id):
                driver.fail()
        return not self.stubborn

    def drivers(self, job_id: str) -> list[Driver]:
        return [driver for driver in self.world.drivers if job_id in driver.spec.result_uri]


@pytest.fixture
def host(world: World) -> OneHost:
    world.host = OneHost(world)
    return world.host


def typo(world: World, *targets: int) -> tuple[PlannedWrite, ...]:
    return tuple(replace(write, keys=("order_id",)) for write in world.writes(*targets))


@pytest.mark.parametrize("steps", [0, 1])
def test_a_driver_that_lives_on_is_ended_and_the_new_plan_runs(world: World, host: OneHost, steps: int) -> None:
    """It has not looked at a target yet, or is just about to write."""
    world.source.append()
    zombie = world.zombie(world.open("one", typo(world)), steps=steps)
    world.source.append()
    world.consume("one", 1)
    zombie.run()
    assert (world.holds(0), world.holds(1), world.offset()) == ({}, {1: 1, 2: 1}, 2)
    assert len(host.asked) == 1


def test_what_it_has_written_is_named_with_the_argument(world: World, host: OneHost) -> None:
    world.source.append()
    zombie = world.zombie(world.open("one", typo(world)), steps=2)
    first, second = (target.uri for target in world.targets)
    with pytest.raises(PlanChanged) as told:
        world.begin("one")
    assert f"keys of {first}: order_id → none" in str(told.value)
    assert f"{first} holds its part, {second} holds nothing of it" in str(told.value)
    zombie.run()
    world.finish(world.open("one", typo(world)))
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {1: 1}, 1)


def test_only_what_it_had_not_written_is_replaced(world: World, host: OneHost) -> None:
    world.source.append()
    zombie = world.zombie(world.open("one", typo(world)), steps=2)
    first, second = typo(world)
    transaction = world.open("one", [first, replace(second, keys=("id",))])
    zombie.run()
    world.finish(transaction)
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {1: 1}, 1)


def test_a_driver_that_does_not_end_or_is_elsewhere_may_write_and_the_error_says_where(
    world: World, host: OneHost
) -> None:
    world.source.append()
    zombie = world.zombie(world.open("one", typo(world)))
    host.stubborn = True
    with pytest.raises(PlanChanged, match=r"nobody saw end.*of this host, and its worker lives or"):
        world.begin("one")
    host.stubborn, host.name = False, "elsewhere"
    with pytest.raises(PlanChanged, match="on its host, here, could end it before"):
        world.begin("one")
    host.name = None
    with pytest.raises(PlanChanged, match="nobody saw end"):
        world.begin("one")
    zombie.run()
    world.finish(world.open("one", typo(world)))
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {1: 1}, 1)


def test_an_unchanged_plan_ends_no_driver(world: World, host: OneHost) -> None:
    world.source.append()
    world.zombie(world.open("one"), steps=1).run()
    world.consume("one")
    assert (host.asked, world.holds(0), world.holds(1)) == ([], {1: 1}, {1: 1})


def test_a_job_of_an_earlier_release_counts_as_alive(world: World, host: OneHost) -> None:
    world.source.append()
    host.name = None
    world.zombie(world.open("one", typo(world)))
    host.name = "here"
    with pytest.raises(PlanChanged, match="nobody saw end"):
        world.begin("one")
    assert host.asked == []


def test_a_second_attempt_that_submits_meanwhile_keeps_its_window(world: World, host: OneHost) -> None:
    """Another attempt with the old plan submits after the drivers were ended, before the plan is taken back."""
    world.source.append()
    stale = world.open("one", typo(world))
    world.zombie(stale)

    def end(job_id: str) -> bool:
        ended = OneHost.end(host, job_id)
        if len(host.asked) == 1:
            world.zombie(stale, steps=1)
        return ended

    host.end = end  # type: ignore[method-assign]
    with pytest.raises((PlanChanged, SubmitRefused)):
        world.begin("one")
    world.finish(world.open("one", typo(world)))
    assert (world.holds(0), world.holds(1), world.offset()) == ({1: 1}, {1: 1}, 1)


def test_ended_jobs_of_a_closed_transaction_are_left_alone(world: World, host: OneHost) -> None:
    world.source.append()
    world.consume("one")
    end_unseen(world.runtime, key_of("one"))
    end_unseen(world.runtime, key_of("unknown"))
    assert host.asked == []


# --- a real kill -9


@pytest.mark.parametrize("point", ["begin.before", "begin.stored", "submit.stored"])
def test_after_a_kill_the_corrected_task_just_runs(world: World, here: JobsOfHost, point: str) -> None:
    world.host = here
    world.source.append()
    assert killed(world, point, world.run) == signal.SIGKILL
    assert len(unseen(world.store)) == (point == "submit.stored")
    world.source.append()
    world.consume("one", 1)
    assert (world.holds(0), world.holds(1), world.offset()) == ({}, {1: 1, 2: 1}, 2)


def test_a_killed_workers_driver_is_ended_first(world: World, here: JobsOfHost) -> None:
    """The worker alone is killed; a process that holds the job's file lives on, until it sees the marker."""
    world.host = here
    world.source.append()

    def run(spec: JobSpec) -> JobResult:
        directory = Path(spec.cancel_uri).with_suffix("")
        directory.mkdir(mode=0o700)
        with worked_for(directory):
            driver_of(directory, WAITS_FOR_ITS_MARKER)
            os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("it was killed")

    assert killed(world, "nowhere", run) == signal.SIGKILL
    (job,) = unseen(world.store)
    directory = Path(world.paths.exchange) / job.id
    assert is_held(directory / HELD)
    assert not is_held(directory / WORKER)
    world.consume("one", 1)
    assert not is_held(directory / HELD)
    assert (world.holds(0), world.holds(1), world.offset()) == ({}, {1: 1}, 1)


def killed(world: World, point: str, run: Callable[[JobSpec], JobResult]) -> int:
    """Consume into the first target, in a process group of its own that is killed at `point`; returns the signal."""
    child = os.fork()
    if child == 0:
        os.setpgrp()
        os.environ[KILL_AT] = point
        try:
            runtime = replace(world.runtime, run=run)
            consume(runtime, key=key_of("one"), streams=("s",), writes=world.writes(0), owner="killed")
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    for table in world.by_uri.values():
        table.reload()
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


@nightly(
    "two processes with Airflow for each point", proven_by=f"{FILE}::test_after_a_kill_the_corrected_task_just_runs"
)
@pytest.mark.parametrize("point", ["begin.before", "begin.stored", "submit.stored"])
def test_after_a_kill_of_a_task_of_the_hook_too(world: World, point: str, tmp_path: Path) -> None:
    world.source.append()
    home = tmp_path / "airflow"
    arguments = [world.url, world.targets[0].uri, str(tmp_path / "said")]
    first = edited(home, "append", *arguments, kill_at=point)
    assert first.returncode == -signal.SIGKILL, first.stderr
    if point == "submit.stored":
        (job,) = unseen(world.store)
        assert job.host is not None
    world.source.append()
    again = edited(home, "merge", *arguments)
    assert (again.returncode, (tmp_path / "said").read_text()) == (0, "merge 2"), again.stderr
    transaction = get_transaction(world.store, key_of("one"))
    assert (transaction.state, transaction.submitted) == (TransactionState.OPEN, False)
    assert unseen(world.store) == ()


@nightly("two drivers of Spark for each store", f"{FILE}::test_a_killed_workers_driver_is_ended_first")
@pytest.mark.e2e
@pytest.mark.spark
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("kind", some(["sqlite", "postgresql"], now=["postgresql"], reason="the other store"))
def test_a_real_driver_without_its_worker_is_ended_and_writes_nothing(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    """The driver has begun, and stands before its first write when its worker alone is killed."""
    source, target = (tmp_path / name for name in ("source", "target"))
    put_table(
        spark,
        source,
        "CREATE TABLE {t} (id INT, name STRING) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
        "INSERT INTO {t} VALUES (1, 'one')",
    )
    put_table(spark, target, "CREATE TABLE {t} (id INT, name STRING) USING delta")
    store = ControlStore(request.getfixturevalue(f"{kind}_store"))
    log = DeltaLog.open(str(source))
    ref = TableRef(str(source), log.uri, log.state().table_id)
    create_stream(store, name="s", source=ref, mode=StreamMode.STANDARD, at_version=0, who="test")
    arguments = [store.url, DeltaLog.open(str(target)).uri, str(tmp_path / "said")]
    command, environment = script_of("killed_edited.py", tmp_path / "airflow", "held", *arguments)
    environment |= in_airflow(tmp_path / "airflow") | {"TIDEMARK_SPARK_MODE": "submit"}
    worker = subprocess.Popen(command, env=environment, start_new_session=True)
    until = time.monotonic() + 600
    while not (tmp_path / "said.begun").exists():
        assert worker.poll() is None
        assert time.monotonic() < until
        time.sleep(0.2)
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait(60)
    again = edited(tmp_path / "airflow", "delivered", *arguments)
    assert again.returncode == 0, again.stderr[-4000:]
    (tmp_path / "said.go").touch()
    assert sorted(tuple(row) for row in spark.read.format("delta").load(str(target)).collect()) == [(1, "one")]
    assert get_stream(store, "s").offset.version == log.head()
    ended = store.read(lambda c: c.exec_driver_sql("SELECT outcome FROM tidemark_job ORDER BY submitted_at").all())
    assert [row[0] for row in ended] == ["its worker was killed", "done"]


def in_airflow(home: Path) -> dict[str, str]:
    return {"AIRFLOW_HOME": str(home), "AIRFLOW_CONN_TIDEMARK_DEFAULT": "tidemark://"}


def edited(home: Path, form: str, *arguments: str, kill_at: str | None = None) -> subprocess.CompletedProcess[str]:
    command, environment = script_of("killed_edited.py", home, form, *arguments)
    more = {KILL_AT: kill_at} if kill_at else {}
    environment |= in_airflow(home) | more
    return subprocess.run(
        command, env=environment, start_new_session=True, capture_output=True, text=True, timeout=900, check=False
    )


def unseen(store: ControlStore) -> tuple[jobs.UnseenJob, ...]:
    """The jobs of the key that nobody saw end; none if it has no open transaction."""
    stored = store.read(lambda c: transactions.current(c, key_of("one")))
    return () if stored is None else store.read(lambda c: jobs.unseen(c, stored.id))


# --- the locks of real processes


@pytest.fixture
def here(tmp_path: Path) -> JobsOfHost:
    settings = settings_from(
        {}, password=None, options={"jobs_root": str(tmp_path / "jobs")}, home=tmp_path, executor=""
    )
    found = JobsOfHost(settings, patience=3.0)
    assert found.name is not None
    (tmp_path / "jobs" / JOB).mkdir()
    return found


def driver_of(directory: Path, script: str) -> subprocess.Popen[str]:
    """A process that inherits the job's file, as a driver does, and says when it runs."""
    with alive(directory) as inherited:
        process = subprocess.Popen(
            [sys.executable, "-c", f"print('runs', flush=True)\n{script}", str(directory)],
            pass_fds=inherited,
            stdout=subprocess.PIPE,
            text=True,
        )
    assert process.stdout is not None
    assert process.stdout.readline() == "runs\n"
    return process


WAITS_FOR_ITS_MARKER = "import os, sys, time\nwhile not os.path.exists(sys.argv[1] + '.cancel'): time.sleep(0.05)"


def test_a_job_that_never_began_has_ended_and_never_begins(here: JobsOfHost, tmp_path: Path) -> None:
    assert here.end("00000000-0000-4000-8000-000000000002")
    assert (tmp_path / "jobs" / "00000000-0000-4000-8000-000000000002.cancel").exists()


def test_a_driver_without_a_worker_stops_by_its_marker(here: JobsOfHost, tmp_path: Path) -> None:
    with driver_of(tmp_path / "jobs" / JOB, WAITS_FOR_ITS_MARKER) as process:
        assert here.end(JOB)
        assert process.wait(10) == 0
    assert here.end(JOB)


def test_a_driver_that_goes_on_has_not_ended(here: JobsOfHost, tmp_path: Path) -> None:
    with driver_of(tmp_path / "jobs" / JOB, "import time\ntime.sleep(60)") as process:
        assert not here.end(JOB)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
        assert here.end(JOB)


def test_a_job_whose_worker_lives_is_left_alone(here: JobsOfHost, tmp_path: Path) -> None:
    with worked_for(tmp_path / "jobs" / JOB):
        assert not here.end(JOB)
    assert not (tmp_path / "jobs" / f"{JOB}.cancel").exists()


def test_the_place_of_jobs_is_part_of_a_hosts_name(here: JobsOfHost, tmp_path: Path) -> None:
    other = settings_from({}, password=None, options={"jobs_root": str(tmp_path / "other")}, home=tmp_path, executor="")
    assert JobsOfHost(other).name != here.name
