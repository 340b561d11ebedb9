"""A task that waits for its driver in YARN: in the triggerer, without a worker. A server plays YARN, and the session
of the tests plays the driver.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.bases.operator import TRIGGER_FAIL_REPR
from airflow.sdk.exceptions import TaskDeferred

from tests.airflow.runs import Lake, Outcome
from tests.airflow.test_yarn_jobs import HANDED_OVER
from tests.played_yarn import PlayedYarn, played_yarn
from tidemark.hooks.spark_job import SparkJob
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.hooks.yarn_job import GRACE
from tidemark.jobs.files import read_spec, write_result
from tidemark.jobs.run import run
from tidemark.operators._spark import SparkOperator
from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.copy_into import CopyIntoOperator
from tidemark.operators.refresh_views import RefreshViewOperator
from tidemark.operators.streams import CreateStreamOperator
from tidemark.operators.views import CreateDynamicTableOperator
from tidemark.pipes.model.jobs import COPY_FILES
from tidemark.streams.model.transaction_jobs import WRITE
from tidemark.streams.store.schema import jobs
from tidemark.streams.worker.clusters import DriverGoesOn
from tidemark.triggers.yarn import YarnApplicationTrigger

pytestmark = [pytest.mark.airflow, pytest.mark.spark]
LEFT = (WRITE.name, COPY_FILES.name)


@pytest.fixture
def lake(spark: object, airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    made = Lake.of_its_own(spark, tmp_path, monkeypatch.setenv, {"c.source": "id BIGINT, name STRING"})  # type: ignore[arg-type]
    made.create("c.mirror", "id BIGINT, name STRING")
    made.sql("INSERT INTO {t} VALUES (1, 'one'), (2, 'two')", "c.source")
    return made


@contextmanager
def drivers(yarn: PlayedYarn, lake: Lake, waiting: Collection[str], *, die: bool = False) -> Iterator[None]:
    """Each driver that YARN gets runs in the session of the tests, once a task waits for it in the triggerer if it may.
    `die`: it does not.
    """
    stopped = threading.Event()

    def serve() -> None:
        while not stopped.wait(0.05):
            for name, app in list(yarn.apps.items()):
                if app["state"] != "RUNNING":
                    continue
                job_id = app["applicationTags"].partition("tidemark-")[2]
                spec = read_spec(str(lake.root / "_tidemark" / "cluster_jobs" / job_id / "spec.json"))
                if spec.kind in LEFT and name not in waiting:
                    continue
                if die:
                    yarn.end(name, "FAILED", "FAILED", "Exit status: 137")
                else:
                    write_result(spec.result_uri, run(lake.spark, spec))
                    yarn.end(name)

    server = threading.Thread(target=serve)
    server.start()
    try:
        yield
    finally:
        stopped.set()
        server.join()


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The applications for which tasks have begun to wait in the triggerer."""
    noted: list[str] = []
    wait = YarnApplicationTrigger._wait

    async def note(self: YarnApplicationTrigger) -> dict[str, object]:
        noted.append(self.application)
        return await wait(self)

    monkeypatch.setattr(YarnApplicationTrigger, "_wait", note)
    return noted


@pytest.fixture
def deferred(
    run_dag: Callable[..., Outcome],
    spark_submit: Callable[[str], Path],
    waiting: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Outcome]:
    """Runs a DAG, by default of a task that delivers, by drivers in YARN for which it waits in the triggerer."""
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))

    def run(yarn: PlayedYarn, lake: Lake, *, dag: DAG | None = None, die: bool = False) -> Outcome:
        connect(yarn, monkeypatch)
        spark_submit(HANDED_OVER.format(home=tmp_path, yarn=yarn.address))
        with drivers(yarn, lake, waiting, die=die):
            return run_dag(consuming() if dag is None else dag)

    return run


def consuming() -> DAG:
    with DAG("in_yarn", schedule=None) as dag:
        create = CreateStreamOperator(task_id="create", stream="y", on="c.source", show_initial_rows=True)
        create >> ConsumeStreamOperator(
            task_id="consume", stream="y", target="c.mirror", write_as="merge", keys="id", deferrable=True
        )
    return dag


def test_a_deferred_task_finds_its_driver_again_and_delivers_once(
    deferred: Callable[..., Outcome], lake: Lake, waiting: list[str]
) -> None:
    with played_yarn() as yarn:
        ran = deferred(yarn, lake)
        assert ran.state == "success"
        assert waiting == list(yarn.apps) == ["application_1_0001"]
        assert ran.returned("consume", "_link_YarnLink") == f"{yarn.address}/cluster/app/application_1_0001"
    assert lake.rows("c.mirror") == [(1, "one"), (2, "two")]
    store = TidemarkHook().open_store()
    (row,) = store.read(lambda connection: connection.execute(jobs.select()).all())
    assert (row.application, row.outcome, row.host) == ("application_1_0001", "done", f"YARN at {yarn.address}")


def test_a_deferred_task_whose_driver_dies_fails_and_starts_no_other(
    deferred: Callable[..., Outcome], lake: Lake, waiting: list[str]
) -> None:
    with played_yarn() as yarn:
        ran = deferred(yarn, lake, die=True)
        assert (ran.state, ran.task("consume")) == ("failed", "failed")
        assert waiting == list(yarn.apps) == ["application_1_0001"]
    assert lake.rows("c.mirror") == []
    (row,) = TidemarkHook().open_store().read(lambda connection: connection.execute(jobs.select()).all())
    assert row.outcome == "DriverDied"


def test_a_deferred_load_and_a_deferred_refresh_take_the_reports_of_their_drivers(
    deferred: Callable[..., Outcome], lake: Lake, waiting: list[str], tmp_path: Path
) -> None:
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "a.csv").write_text("7,seven\n")
    with DAG("two_more", schedule=None) as dag:
        copy = CopyIntoOperator(
            task_id="copy",
            sql=f"COPY INTO c.mirror FROM '{tmp_path}/landing/' FILE_FORMAT = (TYPE = CSV)",
            deferrable=True,
        )
        create = CreateDynamicTableOperator(
            task_id="create",
            view="c.names",
            query="SELECT id, name FROM c.mirror",
            target_lag="1 day",
            initialize="on_schedule",
            enable_row_tracking=True,
        )
        copy >> create >> RefreshViewOperator(task_id="refresh", view="c.names", deferrable=True)
    with played_yarn() as yarn:
        ran = deferred(yarn, lake, dag=dag)
        assert ran.state == "success"
        assert len(waiting) == len(set(waiting)) == 2
        assert {*waiting} < {*yarn.apps}
    assert ran.returned("copy")["rows_loaded"] == 1
    assert [(one["view"], one["rows"]) for one in ran.returned("refresh")] == [("c.names", 1)]
    assert [row[:2] for row in lake.rows("c.names")] == [(7, "seven")]


def test_a_task_whose_triggerer_is_refused_waits_on_its_worker(
    deferred: Callable[..., Outcome], lake: Lake, waiting: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(trigger: YarnApplicationTrigger) -> dict[str, object]:
        waiting.append(trigger.application)
        return trigger._event("refused", "HTTP 403")

    monkeypatch.setattr(YarnApplicationTrigger, "_wait", refused)
    with played_yarn() as yarn:
        ran = deferred(yarn, lake)
        assert (ran.state, waiting) == ("success", list(yarn.apps))
    assert lake.rows("c.mirror") == [(1, "one"), (2, "two")]


def test_a_wait_that_fails_ends_its_driver(deferred: Callable[..., Outcome], lake: Lake, waiting: list[str]) -> None:
    failed = TRIGGER_FAIL_REPR, {"error": "Trigger timeout", "traceback": None}
    resume = SparkOperator.resume_execution
    with played_yarn() as yarn, pytest.MonkeyPatch.context() as airflow:
        # dag.test resumes a task only by an event, and the scheduler by this method.
        airflow.setattr(
            SparkOperator,
            "resume_execution",
            lambda self, next_method, next_kwargs, context: resume(self, *failed, context),
        )
        airflow.setattr(YarnApplicationTrigger, "_wait", _at_once)
        ran = deferred(yarn, lake)
        assert (ran.task("consume"), [app["state"] for app in yarn.apps.values()]) == ("failed", ["KILLED"])
    (row,) = TidemarkHook().open_store().read(lambda connection: connection.execute(jobs.select()).all())
    assert row.outcome == "its task waits no more"


@pytest.mark.parametrize(
    ("allowed", "waits"),
    [(None, "2:05"), (timedelta(hours=1), "0:50"), (timedelta(days=1), "2:05"), (timedelta(minutes=9), "0:00")],
)
def test_a_wait_ends_with_the_execution_timeout_of_its_task(
    allowed: timedelta | None, waits: str, airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    task = CopyIntoOperator(task_id="it", sql="COPY INTO t FROM @s", execution_timeout=allowed, deferrable=True)
    now = datetime.now(UTC)
    left = DriverGoesOn("application_1_0001", "one", now + timedelta(hours=2) - GRACE, own=True)
    context: Any = {"ti": SimpleNamespace(start_date=now - timedelta(minutes=10))}
    with played_yarn() as yarn:
        connect(yarn, monkeypatch)
        task._jobs.append(SparkJob(task.hook.settings))
        with pytest.raises(TaskDeferred) as deferral:
            task.wait_in_the_triggerer(left, context)
    assert deferral.value.timeout is not None
    hours, minutes = divmod(round(deferral.value.timeout / timedelta(minutes=1)), 60)
    assert f"{hours}:{minutes:02}" == waits


async def _at_once(trigger: YarnApplicationTrigger) -> dict[str, object]:
    return trigger._event("timeout", "it still runs")


def test_a_person_who_ends_a_deferred_task_ends_its_driver_from_a_triggerer_without_hadoops_files(
    airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path / "lake"))
    with played_yarn() as yarn:
        connect(yarn, monkeypatch)
        name = yarn.run(1, tags="tidemark-one")
        waits = YarnApplicationTrigger(
            application=name, job_id="one", addresses=[yarn.address], end="2999-01-01T00:00:00+00:00"
        )
        asyncio.run(waits.on_kill())
        assert yarn.apps[name]["state"] == "KILLED"
    assert (tmp_path / "lake" / "_tidemark" / "cluster_jobs" / "one" / "cancel").exists()


def connect(yarn: PlayedYarn, monkeypatch: pytest.MonkeyPatch) -> None:
    where = {"deploy-mode": "cluster", "yarn_resourcemanager_webapp_address": yarn.address}
    monkeypatch.setenv("AIRFLOW_CONN_THE_YARN", json.dumps({"conn_type": "spark", "host": "yarn", "extra": where}))
    extra = {"spark_conn_id": "the_yarn", "spark_conf": {"spark.hadoop.a.secret": "quite-secret"}}
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", json.dumps({"conn_type": "tidemark", "extra": extra}))
