"""The argument of operators whose jobs may grow, the commands of estimates, and one run on a cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, BaseOperator

from tests.airflow.command_line import run_airflow
from tests.airflow.runs import Lake, Outcome
from tests.airflow.standalone_cluster import CLIENT_CONF, standalone_cluster
from tests.architecture.operator_pages import public, starts_spark
from tests.tiers import nightly
from tests.unit.acceleration.made_logs import BEGAN, lines
from tidemark.acceleration.model.estimates import JobRun
from tidemark.acceleration.store.runs import keep_run
from tidemark.acceleration.worker.runs import list_runs
from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument
from tidemark.hooks.spark_job import SparkJob
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.operators._spark import SparkOperator
from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.streams import CreateStreamOperator

pytestmark = pytest.mark.airflow

FACTOR = "query_acceleration_max_scale_factor"
APPEND: dict[str, Any] = {"task_id": "t", "stream": "s", "target": "t.copy", "write_as": "append"}
STANDALONE = {"conn_type": "spark", "host": "spark://master", "port": 7077}
MAY_GROW = [one for one in public().values() if isinstance(one, type) and issubclass(one, SparkOperator)]


@pytest.mark.parametrize("operator", MAY_GROW)
def test_every_operator_that_starts_jobs_takes_the_factor_as_a_template(operator: type[BaseOperator]) -> None:
    assert FACTOR in operator.template_fields
    assert operator.template_fields.count(FACTOR) == 1  # type: ignore[attr-defined]


def test_no_other_operator_starts_jobs() -> None:
    sensors = {name for name in public() if name.endswith("Sensor")}
    others = {name for name, one in public().items() if isinstance(one, type) and one not in MAY_GROW} - sensors
    assert {name for name in others if starts_spark(public()[name])} == set()


@pytest.mark.parametrize("factor", [101, -1, "many", 2.5])
def test_a_wrong_constant_is_an_import_error_of_the_dag(factor: Any) -> None:
    with pytest.raises(InvalidArgument, match=FACTOR):
        ConsumeStreamOperator(**APPEND, **{FACTOR: factor})


@pytest.mark.parametrize("factor", [None, True, False, 0, 100, "4", "{{ params.factor }}"])
def test_other_values_and_templates_are_taken(factor: Any) -> None:
    assert getattr(ConsumeStreamOperator(**APPEND, **{FACTOR: factor}), FACTOR) == factor


def test_the_default_arguments_of_a_dag_hold_for_its_tasks() -> None:
    with DAG("fast", schedule=None, default_args={FACTOR: 3}):
        assert getattr(ConsumeStreamOperator(**APPEND), FACTOR) == 3


@pytest.fixture
def job(airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., SparkJob]:
    """A job with that factor, on that Spark."""
    monkeypatch.delenv("TIDEMARK_SPARK_MODE", raising=False)

    def made(spark: dict[str, Any] | None, factor: int | None, **extra: Any) -> SparkJob:
        if spark is not None:
            monkeypatch.setenv("AIRFLOW_CONN_THE_SPARK", json.dumps(spark))
            extra["spark_conn_id"] = "the_spark"
        monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", json.dumps({"conn_type": "tidemark", "extra": extra}))
        return SparkJob(TidemarkHook().settings, factor=factor)

    return made


@pytest.mark.parametrize(
    ("spark", "extra", "problem"),
    [
        (None, {}, "share the warm Spark of this host"),
        ({"conn_type": "spark_connect", "host": "h", "port": 15002}, {}, "run in a Spark Connect server"),
        ({"conn_type": "spark", "host": "local[2]"}, {"spark_mode": "submit"}, "has no executors to add"),
        (STANDALONE, {}, r"set spark\.executor\.cores"),
        (STANDALONE, {"spark_conf": {"spark.executor.cores": "1"}}, r"set spark\.cores\.max"),
    ],
)
def test_a_spark_that_cannot_grow_is_refused_before_the_job_starts(
    job: Callable[..., SparkJob], spark: dict[str, Any] | None, extra: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        job(spark, 8, **extra).require_ready()


def test_a_submitted_job_gets_the_settings_and_another_one_does_not(job: Callable[..., SparkJob]) -> None:
    conf = {"spark.executor.cores": "1", "spark.cores.max": "1"}
    grown = job(STANDALONE, 3, spark_conf=conf).drivers.submitted_settings()
    assert (grown["spark.dynamicAllocation.maxExecutors"], grown["spark.cores.max"]) == ("4", "4")
    plain = job(STANDALONE, None, spark_conf=conf).drivers.submitted_settings()
    assert plain["spark.cores.max"] == "1"
    assert not [name for name in plain if name.startswith(("spark.dynamicAllocation", "spark.tidemark"))]


def said(*words: str) -> Any:
    answer = run_airflow("tidemark", "acceleration", *words, "--output", "json")
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def test_an_estimate_by_the_id_of_an_application_and_by_the_path_of_its_log(
    airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = int(datetime.now(UTC).timestamp() * 1000)
    log = lines([2000] * 40).replace(str(BEGAN)[:6].encode(), b"%d" % (now // 10**7))
    (tmp_path / "app-1").write_bytes(log)
    conf = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file:{tmp_path}"}
    monkeypatch.setenv(
        "AIRFLOW_CONN_TIDEMARK_DEFAULT", json.dumps({"conn_type": "tidemark", "extra": {"spark_conf": conf}})
    )
    (found,) = said("estimate", "app-1")
    assert (found["status"], found["reason"], found["slots"]) == ("eligible", "", "1")
    assert [row["factor"] for row in found["estimates"]][:4] == ["1", "2", "4", "8"]
    assert said("estimate", str(tmp_path / "app-1"), "--execution", "7")[0]["seconds"] == "80.0"
    missing = run_airflow("tidemark", "acceleration", "estimate", "app-2")
    assert missing.returncode == 1
    assert "EventLogNotFound: There is no event log of app-2" in missing.stderr


def test_accelerated_runs_are_listed(airflow_home: Path, sqlite_store: str, use: Callable[[str], None]) -> None:
    use(sqlite_store)
    at = datetime(2026, 11, 27, tzinfo=UTC)
    plain = JobRun("app-1", "shop", "deliver", "r1", "write", at)
    fast = JobRun("app-2", "shop", "deliver", "r2", "write", at, 3, 1, 4, 33.0, "app-1", 30.0)
    store = ControlStore(sqlite_store)
    for run in (plain, fast):
        store.write(lambda connection, run=run: keep_run(connection, run))  # type: ignore[misc]
    (row,) = said("list")
    shown = ("application", "factor", "executors", "peak", "predicted", "measured", "off_by", "predicted_from")
    assert [row[name] for name in shown] == ["app-2", "3", "1", "4", "33.0", "30.0", "10%", "app-1"]
    assert {row["application"] for row in said("list", "--all")} == {"app-1", "app-2"}
    assert len(said("list", "--all", "--limit", "1")) == 1


@pytest.mark.spark
@pytest.mark.e2e
@nightly("a standalone cluster of its own")
def test_a_consumption_grows_on_a_standalone_cluster_and_is_compared_with_its_prediction(
    run_dag: Callable[..., Outcome], lake: Lake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "events").mkdir()
    conf = {
        **CLIENT_CONF,
        "spark.executor.cores": "1",
        "spark.cores.max": "1",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file:{tmp_path}/events",
        "spark.sql.files.maxPartitionBytes": "4MB",  # a task for each file
    }
    extra = {"spark_conn_id": "standalone", "spark_conf": conf}
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", json.dumps({"conn_type": "tidemark", "extra": extra}))
    lake.create("c.source", "id BIGINT", row_tracking=True)
    lake.create("c.mirror", "id BIGINT, slept STRING")
    waits = "java_method('java.lang.Thread', 'sleep', CAST(3000 AS BIGINT))"
    with DAG("grown", schedule=None, params={"factor": ""}) as dag:
        CreateStreamOperator(task_id="create", stream="grown", on="c.source") >> ConsumeStreamOperator(
            task_id="consume",
            stream="grown",
            write_as="sql",
            sql=f"INSERT INTO c.mirror SELECT id, {waits} FROM grown",
            **{FACTOR: "{{ params.factor }}"},
        )
    with standalone_cluster(tmp_path, workers=2) as cluster:
        monkeypatch.setenv("AIRFLOW_CONN_STANDALONE", cluster.connection())
        assert run_dag(dag).state == "success"
        for factor in ("", "1"):
            lake.sql("INSERT INTO {t} SELECT /*+ REPARTITION(12) */ id FROM range(12)", "c.source")
            assert run_dag(dag, conf={"factor": factor}).state == "success"
    assert len(lake.rows("c.mirror")) == 24
    fast, plain = list_runs(TidemarkHook().open_store(), limit=9)
    assert (plain.factor, plain.executors) == (None, None)
    assert (fast.factor, fast.executors, fast.predicted_from) == (1, 1, plain.application)
    assert fast.note == ""
    assert fast.predicted is not None
    assert fast.measured is not None
