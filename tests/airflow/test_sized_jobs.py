"""Bounds of executors in the connection: read once, used on clusters alone, and a user's own numbers count."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.test_spark_job import RESULT, StandIn, spec_in
from tidemark.errors import InvalidArgument
from tidemark.hooks.cluster_runtime import on_its_cluster
from tidemark.hooks.spark_job import SparkJob
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.streams.planning.executors import ExecutorBounds

pytestmark = pytest.mark.airflow

DYNAMIC = "spark.dynamicAllocation."
YARN = {"conn_type": "spark", "host": "yarn"}
STANDALONE = {"conn_type": "spark", "host": "spark://master", "port": 7077}
SERVER = {"conn_type": "spark_connect", "host": "h", "port": 15002}
BOUNDS = {"min_executors": 2, "max_executors": "20", "bytes_per_executor": 1000}
Made = Callable[..., SparkJob]


@pytest.fixture
def job(airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """A job on that Spark, by a connection with such an extra."""
    monkeypatch.delenv("TIDEMARK_SPARK_MODE", raising=False)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(airflow_home))

    def made(spark: dict[str, Any] | None, factor: int | None = None, **extra: Any) -> SparkJob:
        if spark is not None:
            monkeypatch.setenv("AIRFLOW_CONN_THE_SPARK", json.dumps(spark))
            extra["spark_conn_id"] = "the_spark"
        monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", json.dumps({"conn_type": "tidemark", "extra": extra}))
        return SparkJob(TidemarkHook().settings, factor=factor)

    return made


def dynamic(settings: dict[str, str]) -> dict[str, str]:
    return {name.removeprefix(DYNAMIC): value for name, value in settings.items() if name.startswith(DYNAMIC)}


def test_bounds_are_parsed_once(job: Made) -> None:
    assert job(YARN, **BOUNDS)._settings.executors == ExecutorBounds(20, 2, 1000)
    assert job(YARN, max_executors=3)._settings.executors == ExecutorBounds(3)
    assert job(YARN, max_executors="")._settings.executors is None


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        ({"max_executors": "many"}, "max_executors"),
        ({"max_executors": 0}, "max_executors"),
        ({"max_executors": 2.5}, "max_executors"),
        ({"max_executors": 3, "min_executors": 4}, "min_executors"),
        ({"max_executors": 3, "bytes_per_executor": "4g"}, "bytes_per_executor"),
        ({"min_executors": 2}, "needed beside min_executors"),
    ],
)
def test_bad_bounds_are_an_error_of_the_connection(job: Made, extra: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem) as refused:
        job(YARN, **extra)
    assert "tidemark_default" in str(refused.value)


def test_a_job_gets_the_executors_of_its_bytes_and_one_of_unknown_size_the_bounds(job: Made) -> None:
    drivers = job(YARN, **BOUNDS).drivers
    found = dynamic(drivers.submitted_settings(4500))
    assert [found[f"{name}Executors"] for name in ("min", "initial", "max")] == ["2", "5", "5"]
    assert found == dynamic(drivers.cluster_settings("one", 4500))
    unknown = dynamic(drivers.submitted_settings())
    assert [unknown[f"{name}Executors"] for name in ("min", "initial", "max")] == ["2", "2", "20"]


def test_spark_submit_is_given_the_numbers_of_the_job(
    job: Made, spark_submit: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    sized = job(YARN, **BOUNDS)
    spark_submit(f'printf "%s\\n" "$@" > {tmp_path}/arguments; {RESULT}')
    sized.run(replace(spec_in(tmp_path), planned_bytes=7000))
    assert f"{DYNAMIC}initialExecutors=7" in (tmp_path / "arguments").read_text()


@pytest.mark.parametrize(
    ("spark", "extra"),
    [
        (YARN, {}),
        (None, BOUNDS),
        (SERVER, BOUNDS),
        ({"conn_type": "spark", "host": "local[2]"}, {**BOUNDS, "spark_mode": "submit"}),
        (YARN, {**BOUNDS, "spark_conf": {"spark.executor.instances": "9"}}),
    ],
)
def test_without_bounds_or_executors_and_by_a_users_own_numbers_nothing_is_set(
    job: Made, spark: dict[str, Any] | None, extra: dict[str, Any]
) -> None:
    made = job(spark, **extra)
    assert made.executor_bounds is None
    assert dynamic(made.drivers.submitted_settings(4500)) == {}
    assert made.drivers.submitted_settings(4500) == made.drivers.submitted_settings()


def test_that_a_users_own_numbers_count_is_said(job: Made, caplog: pytest.LogCaptureFixture) -> None:
    made = job(YARN, **BOUNDS, spark_conf={f"{DYNAMIC}enabled": "true"})
    with caplog.at_level(logging.INFO):
        assert on_its_cluster(TidemarkHook().runtime(made.run), made).sizing is None
    assert f"The Spark settings have {DYNAMIC}enabled, so max_executors of the connection is not used." in caplog.text
    sized = job(YARN, **BOUNDS)
    sizing = on_its_cluster(TidemarkHook().runtime(sized.run), sized).sizing
    assert sizing is not None
    assert sizing.bounds == ExecutorBounds(20, 2, 1000)


def test_a_standalone_master_without_the_cores_of_an_executor_is_refused_before_a_job_starts(job: Made) -> None:
    with pytest.raises(InvalidArgument, match=r"set spark\.executor\.cores"):
        job(STANDALONE, **BOUNDS).require_ready()
    job(STANDALONE, **BOUNDS, spark_conf={"spark.executor.cores": "2"}).require_ready()


def test_an_accelerated_job_begins_with_the_executors_of_its_bytes(job: Made) -> None:
    conf = {"spark.executor.cores": "2"}
    drivers = job(STANDALONE, 3, **BOUNDS, spark_conf=conf).drivers
    assert drivers.submitted_settings(4500)["spark.cores.max"] == "40"
    executors = drivers.executors(4500)
    assert executors is not None
    assert (executors.base, executors.most) == (5, 20)
