"""What is submitted to YARN and Kubernetes, and what is refused: the command line and environment that the Spark
provider's hook makes of a connection. No cluster: a script stands in for spark-submit.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.test_spark_job import RESULT, spec_in
from tidemark.errors import InvalidArgument, JobDied, NotYetSupported, SparkMasterUnfit
from tidemark.hooks.spark_job import SparkJob
from tidemark.hooks.tidemark import TidemarkHook

pytestmark = pytest.mark.airflow
StandIn = Callable[[str], Path]
Connect = Callable[..., SparkJob]

SECRET = "s3cr3t" + "-of-mine"
YARN = {"host": "yarn", "extra": {"queue": "etl", "principal": "etl@EXAMPLE"}}
KUBERNETES = {"host": "k8s://https://kube.example", "port": 6443, "extra": {"namespace": "etl"}}


@pytest.fixture
def connect(airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Connect:
    """A job on the Spark connection with these fields."""

    def define(spark: dict[str, Any], **settings: str) -> SparkJob:
        conf = {"spark.executor.instances": "3", "spark.hadoop.fs.s3a.secret.key": SECRET, **settings}
        extra = {"spark_conn_id": "the_spark", "spark_conf": conf, "storage_options": {"secret": SECRET}}
        monkeypatch.setenv("AIRFLOW_CONN_THE_SPARK", json.dumps({"conn_type": "spark", **spark}))
        given = {"conn_type": "tidemark", "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", json.dumps(given))
        return SparkJob(TidemarkHook().settings)

    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path / "hadoop"))
    return define


def submitted(job: SparkJob, spark_submit: StandIn, tmp_path: Path) -> list[str]:
    """The arguments that spark-submit was given, one by one; the environment is kept in the file `environment`."""
    archive = f'for one in "$@"; do case "$one" in *.zip) cp "$one" {tmp_path}/archive.zip ;; esac; done'
    spark_submit(f'printf "%s\\n" "$@" > {tmp_path}/arguments; env > {tmp_path}/environment; {archive}; {RESULT}')
    assert job.run(spec_in(tmp_path)).report == {"seen": "the store"}
    return (tmp_path / "arguments").read_text().splitlines()


def after(arguments: list[str], flag: str) -> list[str]:
    return [value for name, value in pairwise(arguments) if name == flag]


def settings_in(arguments: list[str]) -> dict[str, str]:
    return dict(setting.split("=", 1) for setting in after(arguments, "--conf"))


@pytest.mark.parametrize(
    ("spark", "master"), [(YARN, "yarn"), (KUBERNETES, "k8s://https://kube.example:6443")], ids=["yarn", "kubernetes"]
)
def test_the_driver_runs_beside_the_task_and_the_executors_on_the_cluster(
    connect: Connect, spark_submit: StandIn, tmp_path: Path, spark: dict[str, Any], master: str
) -> None:
    arguments = submitted(connect(spark), spark_submit, tmp_path)
    assert after(arguments, "--master") == [master]
    assert after(arguments, "--deploy-mode") == ["client"]
    (archive,) = after(arguments, "--py-files")
    assert Path(archive).parent == Path(arguments[-1]).parent  # beside the spec, in the job's own directory
    assert zipfile.is_zipfile(tmp_path / "archive.zip")
    assert arguments[-2].endswith("jobs/__main__.py")
    assert arguments[-1].endswith("spec.json")
    settings = settings_in(arguments)
    assert settings["spark.executor.instances"] == "3"
    assert settings["spark.sql.extensions"] == "io.delta.sql.DeltaSparkSessionExtension"
    assert settings["spark.pyspark.python"] == "python3"
    assert settings["spark.pyspark.driver.python"] == sys.executable
    assert "spark.sql.shuffle.partitions" not in settings  # those of one host


def test_queue_and_principal_go_to_yarn_and_the_namespace_to_kubernetes(
    connect: Connect, spark_submit: StandIn, tmp_path: Path
) -> None:
    arguments = submitted(connect(YARN), spark_submit, tmp_path)
    assert (after(arguments, "--queue"), after(arguments, "--principal")) == (["etl"], ["etl@EXAMPLE"])
    arguments = submitted(connect(KUBERNETES), spark_submit, tmp_path)
    assert settings_in(arguments)["spark.kubernetes.namespace"] == "etl"


@pytest.mark.parametrize("spark", [YARN, KUBERNETES], ids=["yarn", "kubernetes"])
def test_secrets_and_environment_reach_the_driver_and_never_the_arguments(
    connect: Connect, spark_submit: StandIn, tmp_path: Path, spark: dict[str, Any]
) -> None:
    arguments = submitted(connect(spark), spark_submit, tmp_path)
    assert SECRET not in " ".join(arguments)
    assert not [name for name in settings_in(arguments) if "Env." in name]
    environment = (tmp_path / "environment").read_text()
    assert f'TIDEMARK_STORAGE_OPTIONS={{"secret": "{SECRET}"}}' in environment
    assert f"PYSPARK_DRIVER_PYTHON={sys.executable}" in environment
    assert after(arguments, "--properties-file")


def test_the_users_own_python_for_executors_wins(connect: Connect, spark_submit: StandIn, tmp_path: Path) -> None:
    job = connect(KUBERNETES, **{"spark.pyspark.python": "/opt/python/bin/python3.11"})
    assert settings_in(submitted(job, spark_submit, tmp_path))["spark.pyspark.python"] == "/opt/python/bin/python3.11"


@pytest.mark.parametrize("spark", [YARN, KUBERNETES], ids=["yarn", "kubernetes"])
def test_a_submission_that_fails_says_its_last_lines(
    connect: Connect, spark_submit: StandIn, tmp_path: Path, spark: dict[str, Any]
) -> None:
    spark_submit('echo "Exception in thread main: the cluster said no"; exit 1')
    with pytest.raises(JobDied, match="the cluster said no"):
        connect(spark).run(spec_in(tmp_path))


def test_yarn_without_its_configuration_is_refused_before_anything_starts(
    connect: Connect, spark_submit: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = spark_submit(RESULT)
    monkeypatch.delenv("HADOOP_CONF_DIR")
    with pytest.raises(SparkMasterUnfit, match="HADOOP_CONF_DIR"):
        connect(YARN).run(spec_in(tmp_path))
    assert not started.exists()
    ok, said = TidemarkHook().test_connection()
    assert (ok, "HADOOP_CONF_DIR" in said) == (False, True)
    monkeypatch.setenv("YARN_CONF_DIR", "/etc/hadoop")
    connect(YARN).require_ready()


def test_kubernetes_without_airflows_provider_for_it_is_refused_with_the_command_that_helps(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "airflow.providers.cncf.kubernetes.kube_client", None)
    with pytest.raises(SparkMasterUnfit, match=r"pip install 'airflow-provider-tidemark\[kubernetes\]'"):
        connect(KUBERNETES).require_ready()


@pytest.mark.parametrize(
    ("spark", "settings", "named"),
    [
        ({**KUBERNETES, "extra": {"deploy-mode": "cluster"}}, {}, "deploy mode 'cluster'"),
        ({"host": "spark://h", "port": 7077, "extra": {"deploy-mode": "cluster"}}, {}, "deploy mode 'cluster'"),
        (YARN, {"spark.submit.deployMode": "cluster"}, "deploy mode 'cluster'"),
        ({"host": "yarn-cluster"}, {}, "yarn-cluster"),
        ({"conn_type": "yarn", "host": "h"}, {}, "the type 'yarn'"),
        ({"host": "mesos://h", "port": 5050}, {}, "mesos"),
    ],
)
def test_what_could_not_be_watched_is_refused_by_name(
    connect: Connect, spark: dict[str, Any], settings: dict[str, str], named: str
) -> None:
    with pytest.raises((NotYetSupported, InvalidArgument), match=named):
        connect(spark, **settings).require_ready()
