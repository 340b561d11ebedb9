"""Jobs without a transaction outlive their worker in YARN: the next attempt of their task waits for them first.

A script stands in for spark-submit, and a server plays YARN.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.test_spark_job import StandIn, spec_in
from tests.airflow.test_yarn_jobs import HANDED_OVER
from tests.played_yarn import PlayedYarn, played_yarn
from tests.until import wait_until
from tidemark.change_streams.model.jobs import CAPTURE_CHANGES
from tidemark.errors import ClusterUnreachable, DriverDied, DriverEndUnproven
from tidemark.hooks import yarn_job
from tidemark.hooks.spark_job import SparkJob
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.materialized.model.jobs import RESOLVE_QUERY
from tidemark.model.jobs import Job, JobResult, JobSpec
from tidemark.pipes.model.jobs import COPY_FILES, RUN_PIPE
from tidemark.replication.model.jobs import APPLY_EVENTS, BACKFILL_OBJECT, BACKFILL_OBJECTS, CAPTURE_EVENTS
from tidemark.streams.model.transaction_jobs import FENCE, WRITE
from tidemark.streams.worker.clusters import DriverGoesOn, LeftDriver, owner_of

pytestmark = pytest.mark.airflow


class WorkerDied(BaseException):
    pass


class Attempts:
    """Attempts of one task, each in a process of its own."""

    def __init__(self, yarn: PlayedYarn, root: Path) -> None:
        self.yarn, self.root = yarn, root

    def job(self, *, leaves: bool = False, awaits: LeftDriver | None = None) -> SparkJob:
        """The job of the next attempt. `awaits`: the driver for which its task has waited in the triggerer."""
        yarn_job._OF_THIS_PROCESS.clear()
        made = SparkJob(TidemarkHook().settings)
        made.cluster._pause, made.cluster._patience = 0.05, 0.0
        made.cluster.leaves, made.cluster.awaits = {CAPTURE_CHANGES.name} if leaves else (), awaits
        return made

    def goes_on(self, spec: JobSpec) -> LeftDriver:
        """The driver that a deferrable task leaves."""
        with pytest.raises(DriverGoesOn) as left:
            self.job(leaves=True).run(spec)
        assert left.value.own
        return LeftDriver(left.value.job_id, left.value.application, "", left.value.deadline, own=True)

    def spec(self, name: str, of: Job[Any, Any] = CAPTURE_CHANGES, **request: Any) -> JobSpec:
        jobs = self.root / "jobs"
        files = {"result_uri": str(jobs / f"{name}.result.json"), "cancel_uri": str(jobs / f"{name}.cancel")}
        return replace(spec_in(self.root), kind=of.name, entry=of.entry, request=request, **files)  # type: ignore[arg-type]

    def left(self, spec: JobSpec) -> str:
        """A worker dies while its driver runs; the application."""
        job = self.job()

        def die(job_id: str, application: object) -> None:
            raise WorkerDied

        job.cluster.told = die
        with pytest.raises(WorkerDied):
            job.run(spec)
        return list(self.yarn.apps)[-1]

    def ends(self, application: str, name: str, report: dict[str, Any]) -> None:
        """The driver writes its result."""
        self.of_job(name).joinpath("result.json").write_text(json.dumps({"report": report, "error": None}))
        self.yarn.end(application)

    def of_job(self, name: str) -> Path:
        return self.root / "lake" / "_tidemark" / "cluster_jobs" / name

    def noted(self) -> list[str]:
        spec = self.spec("any")
        assert spec.key is not None
        folder = self.root / "lake" / "_tidemark" / "cluster_tasks" / owner_of(spec.store_id, spec.key)
        return sorted(file.name for file in folder.iterdir()) if folder.exists() else []


@pytest.fixture
def yarn() -> Iterator[PlayedYarn]:
    with played_yarn() as running:
        yield running


@pytest.fixture
def attempts(
    yarn: PlayedYarn, airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark_submit: StandIn
) -> Attempts:
    where = {"deploy-mode": "cluster", "yarn_resourcemanager_webapp_address": yarn.address}
    spark = {"conn_type": "spark", "host": "yarn", "extra": where}
    extra = {"spark_conn_id": "the_yarn", "spark_conf": {"spark.hadoop.secret": "one, so that there is a file"}}
    monkeypatch.setenv("AIRFLOW_CONN_THE_YARN", json.dumps(spark))
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", json.dumps({"conn_type": "tidemark", "extra": extra}))
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path / "hadoop"))
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path / "lake"))
    spark_submit(HANDED_OVER.format(home=tmp_path, yarn=yarn.address))
    return Attempts(yarn, tmp_path)


def meanwhile(act: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=act)
    thread.start()
    return thread


@pytest.mark.parametrize(
    "kind",
    [
        *(CAPTURE_CHANGES, CAPTURE_EVENTS, BACKFILL_OBJECT, BACKFILL_OBJECTS, APPLY_EVENTS),
        *(RESOLVE_QUERY, RUN_PIPE, COPY_FILES),
    ],
    ids=lambda kind: kind.name,
)
def test_a_retry_that_asks_for_the_same_waits_and_takes_the_result(attempts: Attempts, kind: Job[Any, Any]) -> None:
    application = attempts.left(attempts.spec("one", kind, batch=7))
    assert attempts.noted() == ["one"]
    retry = attempts.job()

    def end() -> None:
        wait_until(lambda: retry.cluster._waited_for is not None)
        attempts.ends(application, "one", {"rows": 5})

    ending = meanwhile(end)
    assert retry.run(attempts.spec("two", kind, batch=7)).report == {"rows": 5}
    ending.join()
    assert list(attempts.yarn.apps) == [application], "no second one was started"
    assert attempts.noted() == []


def test_a_retry_that_asks_for_something_else_begins_when_the_driver_has_ended(attempts: Attempts) -> None:
    application = attempts.left(attempts.spec("one", batch=7))
    retry, began = attempts.job(), list[str]()

    def end() -> None:
        wait_until(lambda: retry.cluster._waited_for is not None)
        began.extend(attempts.yarn.apps)
        attempts.ends(application, "one", {"rows": 5})
        wait_until(lambda: len(attempts.yarn.apps) == 2)
        attempts.ends(list(attempts.yarn.apps)[1], "two", {"rows": 6})

    ending = meanwhile(end)
    assert retry.run(attempts.spec("two", batch=8)).report == {"rows": 6}
    ending.join()
    assert began == [application], "the second was not beside it"
    assert attempts.noted() == []


def test_a_result_from_before_the_retry_is_not_used(attempts: Attempts) -> None:
    application = attempts.left(attempts.spec("one", batch=7))
    attempts.ends(application, "one", {"rows": 5})
    ending = meanwhile(lambda: _when_second(attempts, {"rows": 6}))
    assert attempts.job().run(attempts.spec("two", batch=7)).report == {"rows": 6}
    ending.join()
    assert attempts.noted() == []


def test_a_driver_that_spark_submit_had_not_handed_over_is_barred(attempts: Attempts, yarn: PlayedYarn) -> None:
    spec = attempts.spec("one", batch=7)
    files = attempts.job().cluster.files
    assert spec.key is not None
    files.register(owner_of(spec.store_id, spec.key), "one", "what it was asked for")
    files.put(files.spec(spec, "one"), "one")
    yarn.manager_started = 0
    ending = meanwhile(lambda: _when_second(attempts, {"rows": 6}, at=0))
    assert attempts.job().run(attempts.spec("two", batch=7)).report == {"rows": 6}
    ending.join()
    assert (attempts.of_job("one") / "cancel").exists()


def test_without_an_answer_of_yarn_no_second_one_is_started(attempts: Attempts, yarn: PlayedYarn) -> None:
    application = attempts.left(attempts.spec("one", batch=7))
    yarn.answers["/ws/v1/cluster/apps"] = (503, "")
    with pytest.raises(ClusterUnreachable):
        attempts.job().run(attempts.spec("two", batch=7))
    assert (list(yarn.apps), attempts.noted()) == ([application], ["one"])


def test_a_manager_that_restarts_after_the_submission_is_waited_for(attempts: Attempts, yarn: PlayedYarn) -> None:
    job = attempts.job()
    job.cluster._patience = 60.0
    yarn.answers["/ws/v1/cluster/apps"] = (503, "")

    def restarted() -> None:
        wait_until(lambda: any("applicationTags" in one for one in yarn.asked))
        del yarn.answers["/ws/v1/cluster/apps"]
        attempts.ends("application_1_0001", "one", {"rows": 5})

    ending = meanwhile(restarted)
    assert job.run(attempts.spec("one", batch=7)).report == {"rows": 5}
    ending.join()


def test_a_driver_that_failed_makes_way(attempts: Attempts, yarn: PlayedYarn) -> None:
    application = attempts.left(attempts.spec("one", batch=7))
    yarn.end(application, "FAILED", "FAILED", "Exit status: 137")
    ending = meanwhile(lambda: _when_second(attempts, {"rows": 6}))
    assert attempts.job().run(attempts.spec("two", batch=7)).report == {"rows": 6}
    ending.join()
    assert attempts.noted() == []


def test_a_driver_on_a_lost_node_is_asked_to_stop_and_stays_noted(
    attempts: Attempts, yarn: PlayedYarn, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tidemark.hooks.yarn_job._SECONDS_TO_PROVE", 0.05)
    lost = attempts.left(attempts.spec("one", batch=7))
    yarn.apps[lost] |= {"state": "FAILED", "finalStatus": "FAILED"}  # and its container runs
    ending = meanwhile(lambda: _when_second(attempts, {"rows": 6}))
    assert attempts.job().run(attempts.spec("two", batch=7)).report == {"rows": 6}
    ending.join()
    assert (attempts.of_job("one") / "cancel").exists()
    assert (attempts.noted(), DriverEndUnproven.__name__) == (["one"], "DriverEndUnproven")


def test_jobs_of_one_attempt_run_beside_each_other(attempts: Attempts, yarn: PlayedYarn) -> None:
    job = attempts.job()
    results = dict[str, JobResult]()

    def run(name: str) -> None:
        results[name] = job.run(attempts.spec(name, batch=name))

    first = meanwhile(lambda: run("one"))
    wait_until(lambda: len(yarn.apps) == 1)
    second = meanwhile(lambda: run("two"))
    wait_until(lambda: len(yarn.apps) == 2)
    for application, name in zip(list(yarn.apps), ("one", "two"), strict=True):
        attempts.ends(application, name, {"by": name})
    first.join()
    second.join()
    assert {name: result.report for name, result in results.items()} == {"one": {"by": "one"}, "two": {"by": "two"}}


def test_a_task_that_has_waited_elsewhere_takes_the_result_of_its_driver(attempts: Attempts) -> None:
    left = attempts.goes_on(attempts.spec("one", batch=7))
    assert attempts.noted() == ["one"]
    attempts.ends(str(left.application), "one", {"rows": 5})
    resumed = attempts.job(leaves=True, awaits=left)
    assert resumed.run(attempts.spec("two", batch=7)).report == {"rows": 5}
    assert (list(attempts.yarn.apps), attempts.noted()) == ([left.application], [])


def test_a_task_that_has_waited_elsewhere_fails_with_its_driver_and_its_retry_begins_another(
    attempts: Attempts, yarn: PlayedYarn
) -> None:
    left = attempts.goes_on(attempts.spec("one", batch=7))
    yarn.end(str(left.application), "FAILED", "FAILED", "Exit status: 137")
    with pytest.raises(DriverDied, match="137"):
        attempts.job(leaves=True, awaits=left).run(attempts.spec("two", batch=7))
    assert (list(yarn.apps), attempts.noted()) == ([left.application], [])
    attempts.goes_on(attempts.spec("two", batch=7))
    assert len(yarn.apps) == 2


def test_a_task_that_has_waited_elsewhere_and_asks_for_something_else_waits_on_its_worker(attempts: Attempts) -> None:
    left = attempts.goes_on(attempts.spec("one", batch=7))
    attempts.ends(str(left.application), "one", {"rows": 5})
    ending = meanwhile(lambda: _when_second(attempts, {"rows": 6}))
    resumed = attempts.job(leaves=True, awaits=left)
    assert resumed.run(attempts.spec("two", batch=8)).report == {"rows": 6}
    ending.join()
    assert attempts.noted() == []


def test_a_task_waits_on_its_worker_for_a_job_that_it_was_not_to_leave(attempts: Attempts) -> None:
    ending = meanwhile(lambda: _when_second(attempts, {"rows": 6}, at=0))
    assert attempts.job(leaves=True).run(attempts.spec("two", RESOLVE_QUERY)).report == {"rows": 6}
    ending.join()


def test_a_wait_elsewhere_that_failed_ends_its_driver(attempts: Attempts, yarn: PlayedYarn) -> None:
    spec = attempts.spec("one", batch=7)
    left = attempts.goes_on(spec)
    assert spec.key is not None
    attempts.job().cluster.end_registered(owner_of(spec.store_id, spec.key))
    assert (yarn.apps[str(left.application)]["state"], attempts.noted()) == ("KILLED", [])
    assert (attempts.of_job("one") / "cancel").exists()


@pytest.mark.parametrize("kind", [WRITE, FENCE], ids=lambda kind: kind.name)
def test_jobs_of_a_transaction_have_a_row_and_no_note(attempts: Attempts, kind: Job[Any, Any]) -> None:
    attempts.left(attempts.spec("one", kind))
    assert attempts.noted() == []


def _when_second(attempts: Attempts, report: dict[str, Any], at: int = 1) -> None:
    """Ends the second job once YARN has it."""
    wait_until(lambda: len(attempts.yarn.apps) > at)
    attempts.ends(list(attempts.yarn.apps)[at], "two", report)
