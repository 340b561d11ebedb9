"""What of the worker's environment reaches a driver: what Spark and storage need, and what the connection names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.test_spark_job import RESULT, spec_in
from tidemark.errors import InvalidArgument
from tidemark.hooks._drivers import Drivers, JobFiles
from tidemark.hooks._submission import spark_connection
from tidemark.hooks.connect_driver import ConnectDriver
from tidemark.hooks.spark_job import SparkJob
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.model.driver_environment import driver_environment

pytestmark = pytest.mark.airflow
StandIn = Callable[[str], Path]
Connect = Callable[..., TidemarkHook]

NEEDED = (
    "PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_TIME", "TZ", "TMPDIR", "JAVA_HOME", "JAVA_TOOL_OPTIONS", "SPARK_HOME",
    "SPARK_CONF_DIR", "PYSPARK_PYTHON", "PYTHONPATH", "HADOOP_CONF_DIR", "HADOOP_USER_NAME", "YARN_CONF_DIR",
    "KRB5CCNAME", "KRB5_CONFIG", "AWS_SECRET_ACCESS_KEY", "AWS_WEB_IDENTITY_TOKEN_FILE",
    "GOOGLE_APPLICATION_CREDENTIALS", "AZURE_CLIENT_SECRET", "HTTPS_PROXY", "https_proxy", "no_proxy", "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "KUBERNETES_SERVICE_HOST", "KUBECONFIG",
    "LD_LIBRARY_PATH", "TIDEMARK_KILL_AT", "TIDEMARK_KILL_ONCE",
)  # fmt: skip
KEPT_FROM_IT = (
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "AIRFLOW__CORE__FERNET_KEY", "AIRFLOW__API_AUTH__JWT_SECRET",
    "AIRFLOW_CONN_SHOP", "AIRFLOW_HOME", "AIRFLOW_VAR_TOKEN", "AIRFLOW_CTX_DAG_ID", "AIRFLOW_HTTP_PROXY",
    "airflow_conn_shop", "_AIRFLOW__AS_LIBRARY", "__AIRFLOW_SUPERVISOR_FD",
    "TIDEMARK_CONTROL_STORE", "TIDEMARK_STORAGE_OPTIONS", "TIDEMARK_SOURCE", "TIDEMARK_LAKE_ROOT",
    "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "MASTER",
    "PGPASSWORD", "DATABASE_URL", "FERNET_KEY", "PATHS", "XPATH", "MY_LC_ALL", "PROXY",
)  # fmt: skip


@pytest.fixture
def connect(airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> Connect:
    def define(**extra: Any) -> TidemarkHook:
        given = json.dumps({"conn_type": "tidemark", "extra": extra})
        monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", given)
        return TidemarkHook()

    return define


def test_what_spark_and_storage_need_passes_and_all_else_is_left_out_by_name() -> None:
    worker = {name: f"value of {name}" for name in (*NEEDED, *KEPT_FROM_IT)}
    found = driver_environment(worker)
    assert found.passed == {name: worker[name] for name in NEEDED}
    assert set(found.left_out) == set(KEPT_FROM_IT)
    assert list(found.left_out) == sorted(found.left_out)


def test_the_connection_names_more_one_by_one_or_by_their_beginning() -> None:
    worker = dict.fromkeys(("SHOP_URL", "SHOP", "OTHER", "TEAM_A", "TEAM_B", "AIRFLOW_CONN_A", "TIDEMARK_SOURCE"), "x")
    found = driver_environment(worker, ("SHOP", "TEAM_*", "NOT_THERE", "A*", "TIDEMARK_*"))
    assert set(found.passed) == {"SHOP", "TEAM_A", "TEAM_B"}
    assert set(found.left_out) == {"SHOP_URL", "OTHER", "AIRFLOW_CONN_A", "TIDEMARK_SOURCE"}


def test_values_are_in_no_representation() -> None:
    assert "s3cr3t" not in repr(driver_environment({"HOME": "s3cr3t", "OTHER": "s3cr3t"}))


@pytest.mark.parametrize("given", [["SHOP", "TEAM_*"], '["SHOP", "TEAM_*"]', "SHOP, TEAM_*", " SHOP\nTEAM_* "])
def test_the_setting_is_a_list_or_text(connect: Connect, given: Any) -> None:
    assert connect(driver_environment=given).settings.driver_environment == ("SHOP", "TEAM_*")


def test_without_a_connection_the_configuration_says_it(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_DRIVER_ENVIRONMENT", "SHOP")
    assert connect().settings.driver_environment == ("SHOP",)
    assert connect(driver_environment="OTHER").settings.driver_environment == ("OTHER",)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("AIRFLOW_CONN_SHOP", "never"),
        ("airflow_home", "never"),
        ("_AIRFLOW__AS_LIBRARY", "never"),
        ("AIRFLOW_*", "never"),
        ("TIDEMARK_CONTROL_STORE", "never"),
        ("*", "a name"),
        ("SHOP=s3cr3t", "a name"),
        ("A*B", "a name"),
        ("[1]", "a name"),
        ('{"SHOP": "s3cr3t"}', "a list"),
        ('["SHOP"', "a list"),
        (7, "a list"),
    ],
)
def test_what_may_never_pass_and_what_is_no_name_is_refused(connect: Connect, given: Any, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem) as refused:
        _ = connect(driver_environment=given).settings
    assert refused.value.argument == "driver_environment"
    assert "s3cr3t" not in str(refused.value)


def test_a_submitted_driver_has_the_allowed_names_and_the_log_those_left_out(
    connect: Connect,
    spark_submit: StandIn,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for name in ("AIRFLOW_CONN_CANARY", "AIRFLOW__CORE__FERNET_KEY", "DATABASE_URL", "SHOP_HOLD", "AWS_REGION"):
        monkeypatch.setenv(name, f"{name}-s3cr3t")
    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere:1/;token=s3cr3t")
    monkeypatch.setenv("BAD\nNAME", "s3cr3t")
    spark_submit(f"env -0 > {tmp_path}/environment; {RESULT}")
    job = SparkJob(connect(driver_environment="SHOP_HOLD", storage_options={"key": "k"}).settings)
    with caplog.at_level("INFO"):
        assert job.run(spec_in(tmp_path)).report == {"seen": "the store"}
    seen = dict(entry.split("=", 1) for entry in (tmp_path / "environment").read_text().split("\0") if entry)
    assert [name for name in seen if "AIRFLOW" in name] == []
    assert not {"DATABASE_URL", "TIDEMARK_CONTROL_STORE", "SPARK_REMOTE"} & set(seen)
    assert (seen["SHOP_HOLD"], seen["AWS_REGION"]) == ("SHOP_HOLD-s3cr3t", "AWS_REGION-s3cr3t")
    assert seen["TIDEMARK_STORAGE_OPTIONS"] == '{"key": "k"}'
    (line,) = [line for line in caplog.messages if "AIRFLOW_CONN_CANARY" in line]
    assert "AIRFLOW__CORE__FERNET_KEY" in line
    assert "DATABASE_URL" in line
    assert "BAD\\nNAME" in line
    assert "SHOP_HOLD" not in line
    assert "s3cr3t" not in caplog.text


def test_a_driver_behind_connect_has_the_same(
    connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_WARM", json.dumps({"conn_type": "spark_connect", "host": "localhost", "port": 1}))
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", "s3cr3t")
    monkeypatch.setenv("DATABASE_URL", "s3cr3t")
    monkeypatch.setenv("SHOP_HOLD", "here")
    monkeypatch.setenv("SPARK_LOCAL_REMOTE", "1")
    settings = connect(spark_conn_id="warm", driver_environment="SHOP_HOLD").settings
    connection = spark_connection(settings.spark_conn_id, settings.spark_master)
    driver = Drivers(settings, connection).remote(JobFiles(tmp_path, ("-c", "pass")))
    assert isinstance(driver, ConnectDriver)
    (tmp_path / "application.py").write_text("import os; print(*sorted(os.environ), sep='\\n')")
    driver.submit(str(tmp_path / "application.py"), cwd=str(tmp_path))
    seen = driver.spark_log.read_text().splitlines()
    assert {"SHOP_HOLD", "SPARK_REMOTE", "PATH", "TIDEMARK_SPARK_SETTINGS"} <= set(seen)
    assert [name for name in seen if "AIRFLOW" in name or name in ("DATABASE_URL", "SPARK_LOCAL_REMOTE")] == []


def test_the_java_that_is_asked_is_that_of_the_driver(
    connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Java that only answers is asked with the driver's environment, too."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\nenv > {tmp_path}/asked\necho 'openjdk version \"17.0.1\"'\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("DATABASE_URL", "s3cr3t")
    SparkJob(connect().settings).require_ready()
    assert "s3cr3t" not in (tmp_path / "asked").read_text()


def test_the_docs_name_every_name_that_passes() -> None:
    from tidemark.model.driver_environment import BEGINNINGS, ENDINGS, NAMES

    page = (Path(__file__).parents[2] / "provider/docs/how-to/keep-secrets.md").read_text()
    shown = [*NAMES, *(f"{name}*" for name in BEGINNINGS), *(f"*{name}" for name in ENDINGS)]
    assert [name for name in shown if f"`{name}`" not in page] == []
