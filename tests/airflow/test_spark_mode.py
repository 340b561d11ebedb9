"""The way to Spark: what the connections name, else what fits; and the commands of the warm Spark."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.airflow.command_line import run_airflow
from tidemark.cli import spark
from tidemark.errors import InvalidArgument, WarmSparkBusy
from tidemark.hooks.spark_job import SparkJob
from tidemark.hooks.spark_mode import SparkMode, mode_of
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.replication.model.jobs import BACKFILL_OBJECT
from tidemark.streams.worker.limits import JobPaths
from tidemark.warm_spark.home import ALIVE, ServerHome, is_alive, note_process
from tidemark.warm_spark.locks import lock_now
from tidemark.warm_spark.records import ServerOrder, ServerRecord
from tidemark.warm_spark.slots import take_slot

pytestmark = pytest.mark.airflow

LOCAL = {"conn_type": "spark", "host": "local[2]"}
STANDALONE = {"conn_type": "spark", "host": "spark://master", "port": 7077}
SERVER = {"conn_type": "spark_connect", "host": "localhost", "port": 15002}


@pytest.fixture
def mode(airflow_home: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The mode for a Spark connection, with further settings of the Tidemark connection."""
    monkeypatch.delenv("TIDEMARK_SPARK_MODE")

    def found(spark: dict[str, Any] | None, **extra: Any) -> SparkMode:
        if spark is not None:
            monkeypatch.setenv("AIRFLOW_CONN_THE_SPARK", json.dumps(spark))
            extra["spark_conn_id"] = "the_spark"
        tidemark = {"conn_type": "tidemark", "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", json.dumps(tidemark))
        settings = TidemarkHook().settings
        return mode_of(settings, SparkJob(settings).drivers.connection)

    return found


def test_each_spark_has_a_mode_that_fits(mode: Any) -> None:
    assert mode(None) is SparkMode.WARM
    assert mode(LOCAL) is SparkMode.WARM
    assert mode(STANDALONE) is SparkMode.SUBMIT
    assert mode(SERVER) is SparkMode.CONNECT


def test_without_the_connect_client_jobs_are_submitted_and_the_log_says_why(
    mode: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "grpc" else find(name, *more))
    with caplog.at_level("INFO"):
        assert mode(LOCAL) is SparkMode.SUBMIT
    assert "Jobs are submitted: the warm Spark of this host needs the packages grpc." in caplog.text


@pytest.mark.parametrize("variable", ["AIRFLOW_IS_K8S_EXECUTOR_POD", "AIRFLOW_IS_EXECUTOR_CONTAINER"])
def test_a_worker_that_ends_with_its_task_submits(mode: Any, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "True")
    assert mode(LOCAL) is SparkMode.SUBMIT
    assert mode(LOCAL, spark_mode="warm") is SparkMode.WARM


def test_the_connection_wins_over_the_environment(mode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_SPARK_MODE", "submit")
    assert mode(LOCAL) is SparkMode.SUBMIT
    assert mode(LOCAL, spark_mode="Warm") is SparkMode.WARM
    assert mode(SERVER) is SparkMode.CONNECT


@pytest.mark.parametrize(
    ("spark", "named", "problem"),
    [
        (LOCAL, "connect", "'the_spark' names no Spark Connect server"),
        (SERVER, "warm", "'the_spark' names a Spark Connect server"),
        (SERVER, "submit", "'the_spark' names a Spark Connect server"),
        (LOCAL, "hot", "one of warm, submit, connect"),
    ],
)
def test_a_mode_that_does_not_fit_is_refused(mode: Any, spark: dict[str, Any], named: str, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        mode(spark, spark_mode=named)


@pytest.mark.parametrize("value", ["0", "-1", "many", "2.5"])
def test_a_number_of_jobs_that_is_none_is_refused(mode: Any, value: str) -> None:
    with pytest.raises(InvalidArgument, match="spark_slots"):
        mode(LOCAL, spark_slots=value)


@pytest.mark.parametrize(
    ("heap", "slots"), [(None, 4), ("1g", 2), ("3072m", 6), ("3072", 6), ("16g", 8), ("1t", 8), ("100k", 2), ("?", 4)]
)
def test_each_job_of_a_server_has_its_part_of_the_heap(
    mode: Any, monkeypatch: pytest.MonkeyPatch, heap: str | None, slots: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    conf = {} if heap is None else {"spark.driver.memory": heap}
    mode(LOCAL, spark_conf=conf)
    assert SparkJob(TidemarkHook().settings).warm_spark().order.slots == slots
    mode(LOCAL, spark_conf=conf, spark_slots=7)
    assert SparkJob(TidemarkHook().settings).warm_spark().order.slots == 7


def test_equal_settings_share_a_server_and_others_do_not(mode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def home(**extra: Any) -> Path:
        mode(LOCAL, **extra)
        return SparkJob(TidemarkHook().settings).warm_spark().home.root

    first = home()
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}{os.pathsep}/nowhere")
    monkeypatch.setenv("TIDEMARK_KILL_AT", "never")
    assert home() == first
    others = [home(spark_conf={"spark.a": "b"}), home(spark_slots=5), home(spark_idle_minutes=1)]
    others += [home(spark_packages="a:b:1, c:d:1"), home(spark_packages="a:b:2,c:d:1"), home(spark_packages="-")]
    assert home(spark_packages="a:b:1,c:d:1") == others[3]
    monkeypatch.setenv("AWS_SESSION_TOKEN", "s3cr3t")
    others.append(home())
    assert len({first, *others}) == 8
    assert "s3cr3t" not in str(others)


def test_a_job_that_needs_a_package_of_its_own_shares_the_server_of_the_others(mode: Any) -> None:
    mode(LOCAL)
    settings = TidemarkHook().settings
    plain, more = SparkJob(settings).warm_spark(), SparkJob(settings, packages=("a:b:1",)).warm_spark()
    assert plain.home == more.home
    assert more.order.packages == (*plain.order.packages, "a:b:1")


def test_servers_of_one_family_differ_in_temporary_credentials_only(mode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def order(token: str, **extra: Any) -> ServerOrder:
        monkeypatch.setenv("AWS_SESSION_TOKEN", token)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", f"of {token}")
        mode(LOCAL, **extra)
        return SparkJob(TidemarkHook().settings).warm_spark().order

    assert order("").family == ""
    assert order("first").family == order("second").family != order("second", spark_slots=5).family


def test_the_users_java_options_are_last_and_a_collector_of_theirs_is_the_only_one(mode: Any) -> None:
    def options(**conf: str) -> str:
        mode(LOCAL, spark_conf=conf)
        return SparkJob(TidemarkHook().settings).warm_spark().conf["spark.driver.extraJavaOptions"]

    assert options().startswith("-XX:+UseSerialGC -XX:+ExitOnOutOfMemoryError")
    theirs = options(**{"spark.driver.extraJavaOptions": "-XX:+UseZGC -Dx=y"})
    assert theirs.endswith("-XX:+UseZGC -Dx=y")
    assert "SerialGC" not in theirs
    assert "SerialGC" not in options(**{"spark.driver.memory": "32g"})


def test_a_job_without_a_slot_until_its_deadline_names_the_jobs_that_have_them(
    mode: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_JOBS_ROOT", str(tmp_path / "jobs"))
    mode(LOCAL, spark_slots=2)
    job = SparkJob(TidemarkHook().settings)
    warm = job.warm_spark()
    place = warm.home.root / "one"
    place.mkdir(parents=True, mode=0o700)
    number = lock_now(place / ALIVE)
    assert number is not None
    server = ServerRecord(str(place), 1, os.getpid(), warm.order, datetime.now(UTC), "4.2.0", "t")
    warm.home.put(server)
    slot = take_slot(server, is_long=True)
    assert slot is not None
    slot.claim("of the first", "shop/monday/backfill")
    paths = JobPaths(str(tmp_path / "lake"), str(tmp_path / "jobs"))
    deadline = datetime.now(UTC) + timedelta(seconds=1)
    spec = paths.spec(BACKFILL_OBJECT, str(uuid4()), {}, store_id="s", deadline=deadline, key=None)  # type: ignore[misc]
    with pytest.raises(WarmSparkBusy) as failed:
        job.run(spec)
    assert "waited 0 minutes for one of the 1 slots that it may take" in str(failed.value)
    assert "Jobs in slots: shop/monday/backfill." in str(failed.value)
    slot.clear()
    slot.release()
    os.close(number)


def test_the_commands_list_and_retire_the_servers_of_this_user(
    mode: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_JOBS_ROOT", str(tmp_path / "jobs"))
    mode(LOCAL)
    assert json.loads(run_airflow("tidemark", "spark", "status", "--output", "json").stdout) == []
    directory = tmp_path / "jobs" / "spark" / "digest" / "one"
    directory.mkdir(parents=True)
    alive = lock_now(directory / ALIVE)
    record = ServerRecord(str(directory), 15002, os.getpid(), ServerOrder(2, ()), datetime.now(UTC), "4.2.0", "s3cr3t")
    home = ServerHome(directory.parent)
    home.put(record)
    for command, state in (("status", "running"), ("stop", "retiring"), ("status", "retiring"), ("stop", "retiring")):
        said = run_airflow("tidemark", "spark", command, "--output", "json")
        assert [(row["state"], row["jobs"]) for row in json.loads(said.stdout)] == [(state, "0 of 2")]
        assert "s3cr3t" not in said.stdout
    assert home.running() is None
    assert is_alive(record)
    assert alive is not None
    os.close(alive)


def test_the_commands_list_a_server_that_starts_and_kill_it_only_if_that_is_asked(
    mode: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDEMARK_JOBS_ROOT", str(tmp_path / "jobs"))
    mode(LOCAL)

    def said(command: Callable[[Namespace], None], **more: bool) -> list[tuple[str, str, str | None]]:
        command(Namespace(conn_id="tidemark_default", output="json", verbose=False, **more))
        return [(row["state"], row["process"], row["address"]) for row in json.loads(capsys.readouterr().out)]

    place = tmp_path / "jobs" / "spark" / "digest" / "one"
    place.mkdir(parents=True)
    alive = lock_now(place / ALIVE)
    assert alive is not None
    sleeps = [sys.executable, "-c", "import time; time.sleep(600)"]
    process = subprocess.Popen(sleeps, pass_fds=(alive,), start_new_session=True)
    os.close(alive)
    try:
        assert said(spark.status) == []  # perhaps another host's
        note_process(place, process.pid)
        starting = [("starting", str(process.pid), None)]
        assert said(spark.status) == starting
        assert said(spark.stop, now=False) == starting
        assert process.poll() is None
        said(spark.stop, now=True)
        assert process.wait(timeout=30) == -signal.SIGKILL
    finally:
        process.kill()
        process.wait()
    assert said(spark.status) == []


def test_a_server_is_not_started_for_jobs_that_run_otherwise(mode: Any) -> None:
    mode(LOCAL, spark_mode="submit")
    said = run_airflow("tidemark", "spark", "start")
    assert said.returncode == 1
    assert "spark_mode='submit': jobs of this connection do not run in the warm Spark of a host" in said.stderr
