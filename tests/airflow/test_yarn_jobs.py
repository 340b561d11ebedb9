"""Jobs in deploy mode cluster: what spark-submit is given, what lies in the lake, and what the driver makes of it.

A script stands in for spark-submit, and a server plays YARN. The driver's bootstrap is the real one.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.airflow.test_spark_job import KEY, spec_in
from tests.played_yarn import PlayedYarn, played_yarn
from tests.until import wait_until
from tidemark.errors import (
    DriverDied,
    DriverEndUnproven,
    DriverMayRunOn,
    InvalidArgument,
    JobCancelled,
    JobDied,
    JobLeftNoResult,
    NotYetSupported,
    SparkMasterUnfit,
)
from tidemark.hooks.spark_application import SparkApplication
from tidemark.hooks.spark_job import SparkJob
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.model.yarn import YarnApplication

pytestmark = pytest.mark.airflow
StandIn = Callable[[str], Path]

SECRET = "s3cr3t" + "-of-mine"
HANDED_OVER = """printf "%s\\n" "$@" > {home}/arguments; env > {home}/environment
while [ "$1" != --properties-file ]; do shift; done; cat "$2" > {home}/properties
python3 -c 'import sys, urllib.parse, urllib.request
tags = next(a for a in open("{home}/arguments").read().split() if a.startswith("spark.yarn.tags="))
urllib.request.urlopen("{yarn}/played?tags=" + urllib.parse.quote(tags.partition("=")[2]))'"""


@pytest.fixture
def yarn() -> Iterator[PlayedYarn]:
    with played_yarn() as running:
        yield running


@pytest.fixture
def job(yarn: PlayedYarn, airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SparkJob:
    """A job on a Spark connection with deploy mode cluster."""
    where = {"deploy-mode": "cluster", "yarn_resourcemanager_webapp_address": yarn.address}
    spark = {"conn_type": "spark", "host": "yarn", "extra": where}
    conf = {"spark.hadoop.fs.s3a.secret.key": SECRET, "spark.yarn.tags": "etl"}
    extra = {"spark_conn_id": "the_yarn", "spark_conf": conf, "storage_options": {"secret": SECRET, "quote": 'a"$b'}}
    monkeypatch.setenv("AIRFLOW_CONN_THE_YARN", json.dumps(spark))
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", json.dumps({"conn_type": "tidemark", "extra": extra}))
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path / "hadoop"))
    monkeypatch.setenv("TIDEMARK_LAKE_ROOT", str(tmp_path / "lake"))
    monkeypatch.setenv("TIDEMARK_DRIVER_ENVIRONMENT", "SHOP_*")
    monkeypatch.setenv("SHOP_URL", "http://shop")
    made = SparkJob(TidemarkHook().settings)
    made.cluster._pause = 0.05
    return made


def in_the_lake(tmp_path: Path) -> Path:
    """The job's own directory."""
    return tmp_path / "lake" / "_tidemark" / "cluster_jobs" / "one"


def handed_over(
    job: SparkJob, yarn: PlayedYarn, spark_submit: StandIn, tmp_path: Path, ends: Callable[[str], None]
) -> None:
    """Runs the job; `ends` ends the driver once YARN has it."""
    spark_submit(HANDED_OVER.format(home=tmp_path, yarn=yarn.address))

    def end() -> None:
        wait_until(lambda: bool(yarn.apps))
        ends(next(iter(yarn.apps)))

    driver = threading.Thread(target=end)
    driver.start()
    try:
        job.run(spec_in(tmp_path))
    finally:
        driver.join()


def test_the_driver_is_handed_to_yarn_with_a_tag_of_its_own_and_its_secrets_in_no_argument(
    job: SparkJob, yarn: PlayedYarn, spark_submit: StandIn, tmp_path: Path
) -> None:
    told: list[tuple[str, YarnApplication]] = []
    job.cluster.told = lambda job_id, application: told.append((job_id, application))

    def end(name: str) -> None:
        wait_until(lambda: bool(told))  # before anything waits for it
        (in_the_lake(tmp_path) / "result.json").write_text('{"report": {}, "error": null}')
        yarn.end(name)

    handed_over(job, yarn, spark_submit, tmp_path, end)
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert ("--deploy-mode", "cluster") in pairwise(arguments)
    settings = dict(value.split("=", 1) for name, value in pairwise(arguments) if name == "--conf")
    assert settings["spark.yarn.tags"] == "etl,tidemark-one"
    assert settings["spark.yarn.maxAppAttempts"] == "1"
    assert settings["spark.yarn.submit.waitAppCompletion"] == "false"
    assert settings["spark.pyspark.driver.python"] == settings["spark.pyspark.python"] == "python3"
    assert "--py-files" not in arguments
    assert arguments[-5].endswith("jobs/in_cluster.py")
    assert SECRET not in " ".join(arguments) + (tmp_path / "environment").read_text()
    properties = dict(line.split("=", 1) for line in (tmp_path / "properties").read_text().splitlines())
    environment = json.loads(base64.b64decode(properties["spark.yarn.appMasterEnv.TIDEMARK_SECRETS"]))
    assert json.loads(environment["TIDEMARK_STORAGE_OPTIONS"]) == {"secret": SECRET, "quote": 'a"$b'}
    assert environment["SHOP_URL"] == "http://shop"
    assert "HOME" not in environment
    assert {(job_id, one.id) for job_id, one in told} == {("one", "application_1_0001")}
    assert not in_the_lake(tmp_path).exists()
    assert list((tmp_path / "jobs").iterdir() if (tmp_path / "jobs").exists() else []) == []


def test_the_driver_runs_the_archive_and_the_spec_that_the_worker_wrote_and_no_other(
    job: SparkJob, yarn: PlayedYarn, spark_submit: StandIn, tmp_path: Path
) -> None:
    with pytest.raises(JobLeftNoResult):
        handed_over(job, yarn, spark_submit, tmp_path, yarn.end)
    script, archive, archive_hash, spec, spec_hash = (tmp_path / "arguments").read_text().splitlines()[-5:]
    assert zipfile.is_zipfile(archive)
    assert hashlib.sha256(Path(archive).read_bytes()).hexdigest() == archive_hash
    told = json.loads(Path(spec).read_text())
    assert told["result_uri"] == str(in_the_lake(tmp_path) / "result.json")
    assert told["cancel_uri"] == str(in_the_lake(tmp_path) / "cancel")
    assert SECRET not in Path(spec).read_text()
    for changed in (archive, spec):
        good = Path(changed).read_bytes()
        Path(changed).write_bytes(good + b" ")
        ended = _bootstrap(tmp_path, script, archive, archive_hash, spec, spec_hash)
        assert ended.returncode == 1
        assert f"{changed} is not what the worker wrote" in ended.stderr
        Path(changed).write_bytes(good)
    ended = _bootstrap(tmp_path, script, archive, archive_hash, spec, spec_hash)
    assert "began in " in ended.stderr
    assert "tidemark-spark-side.zip/tidemark/" in ended.stderr


def test_a_driver_that_dies_is_told_with_yarns_words_and_its_last_lines(
    job: SparkJob, yarn: PlayedYarn, spark_submit: StandIn, tmp_path: Path
) -> None:
    with pytest.raises(DriverDied, match="Exit status: 137") as died:
        handed_over(
            job, yarn, spark_submit, tmp_path, lambda name: yarn.end(name, "FAILED", "FAILED", "Exit status: 137")
        )
    assert (died.value.key, died.value.application) == (str(KEY), "application_1_0001")
    assert "the end of stderr" in died.value.tail


def test_a_submission_that_fails_without_an_application_is_job_died_and_bars_a_late_one(
    job: SparkJob, yarn: PlayedYarn, spark_submit: StandIn, tmp_path: Path
) -> None:
    spark_submit('echo "Exception in thread main: queue etl is unknown"; exit 1')
    with pytest.raises(JobDied, match="queue etl is unknown"):
        job.run(spec_in(tmp_path))
    assert (in_the_lake(tmp_path) / "cancel").exists()


def test_cancelling_sets_the_marker_and_kills_the_application(
    job: SparkJob, yarn: PlayedYarn, spark_submit: StandIn, tmp_path: Path
) -> None:
    def cancel(name: str) -> None:
        wait_until(lambda: job.cluster._waited_for is not None)
        job.cancel()

    with pytest.raises(JobCancelled):
        handed_over(job, yarn, spark_submit, tmp_path, cancel)
    assert yarn.apps["application_1_0001"]["state"] == "KILLED"
    assert (in_the_lake(tmp_path) / "cancel").exists()


def test_a_cancel_while_spark_submit_runs_ends_it_and_leaves_no_driver(
    job: SparkJob, yarn: PlayedYarn, spark_submit: StandIn, tmp_path: Path
) -> None:
    started = spark_submit("sleep 300")
    threading.Thread(target=lambda: (wait_until(started.exists), job.cancel())).start()
    with pytest.raises(JobCancelled):
        job.run(spec_in(tmp_path))
    assert not yarn.apps


class TimeOut(BaseException):
    """As Airflow ends a task that takes too long."""


def test_a_time_out_while_spark_submit_runs_kills_the_application_that_yarn_has_got(
    job: SparkJob, yarn: PlayedYarn, spark_submit: StandIn, tmp_path: Path
) -> None:
    spark_submit(HANDED_OVER.format(home=tmp_path, yarn=yarn.address) + "; sleep 300")
    ended = threading.Event()

    def time_out(*_: object) -> None:
        raise TimeOut

    def alarm() -> None:
        wait_until(lambda: bool(yarn.apps) or ended.is_set())
        os.kill(os.getpid(), signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, time_out)
    alarming = threading.Thread(target=alarm)
    alarming.start()
    try:
        with pytest.raises(TimeOut):
            job.run(spec_in(tmp_path))
    finally:
        ended.set()
        alarming.join()
        signal.signal(signal.SIGALRM, before)
    assert yarn.apps["application_1_0001"]["state"] == "KILLED"
    assert (in_the_lake(tmp_path) / "cancel").exists()


def test_a_cancel_whose_worker_ends_at_once_has_set_the_marker_and_killed_by_the_tag(
    job: SparkJob, yarn: PlayedYarn, tmp_path: Path
) -> None:
    with job.cluster.handing_over("one"):
        yarn.run(1, tags="tidemark-one")
        job.cancel()
    assert yarn.apps["application_1_0001"]["state"] == "KILLED"
    assert (in_the_lake(tmp_path) / "cancel").exists()


def test_a_job_that_was_cancelled_before_spark_submit_is_not_submitted(
    job: SparkJob, yarn: PlayedYarn, spark_submit: StandIn, tmp_path: Path
) -> None:
    started = spark_submit(HANDED_OVER.format(home=tmp_path, yarn=yarn.address))
    job.cancel()
    with pytest.raises(JobCancelled):
        job.run(spec_in(tmp_path))
    assert (started.exists(), yarn.apps) == (False, {})


def test_a_driver_that_yarn_does_not_list_is_named_by_its_tag(
    job: SparkJob, yarn: PlayedYarn, spark_submit: StandIn, tmp_path: Path
) -> None:
    spark_submit("exit 0")
    with pytest.raises(DriverMayRunOn, match=r"application \(unknown, with the tag tidemark-one\)"):
        job.run(spec_in(tmp_path))


def test_an_end_without_proof_has_yarns_words_and_the_drivers_last_lines(
    job: SparkJob, yarn: PlayedYarn, spark_submit: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemark.hooks.yarn_job._SECONDS_TO_PROVE", 0.05)

    def lose_the_node(name: str) -> None:
        yarn.apps[name] |= {"state": "FAILED", "diagnostics": "Container released on a *lost* node"}

    with pytest.raises(DriverEndUnproven, match=r"\*lost\* node") as unproven:
        handed_over(job, yarn, spark_submit, tmp_path, lose_the_node)
    assert "the end of stderr" in str(unproven.value)


def test_the_address_comes_from_yarn_site_where_the_connection_has_none(
    job: SparkJob, yarn: PlayedYarn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}}
    monkeypatch.setenv("AIRFLOW_CONN_THE_YARN", json.dumps(spark))
    with pytest.raises(SparkMasterUnfit, match="yarn_resourcemanager_webapp_address"):
        SparkJob(TidemarkHook().settings).require_ready()
    (tmp_path / "hadoop").mkdir()
    site = tmp_path / "hadoop" / "yarn-site.xml"
    told = f"<property><name>yarn.resourcemanager.webapp.address</name><value>127.0.0.1:{yarn.port}</value></property>"
    site.write_text(f"<configuration>{told}</configuration>")
    found = SparkJob(TidemarkHook().settings)
    found.require_ready()
    assert found.cluster.manager.addresses == (yarn.address,)
    site.write_text("<configuration>")
    with pytest.raises(SparkMasterUnfit, match="cannot be read"):
        SparkJob(TidemarkHook().settings).require_ready()


def test_the_test_button_asks_yarn(job: SparkJob, yarn: PlayedYarn) -> None:
    ok, said = TidemarkHook().test_connection()
    assert (ok, f"YARN at {yarn.address} answers" in said) == (True, True), said
    yarn.answers["/ws/v1/cluster/info"] = (403, "no")
    ok, said = TidemarkHook().test_connection()
    assert (ok, "refuses the request" in said) == (False, True), said


def test_what_cannot_run_in_a_cluster_is_refused_by_name(job: SparkJob, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = TidemarkHook().settings
    with pytest.raises(NotYetSupported, match="application in deploy mode"):
        SparkApplication(settings).run_application(Path("a.py"), (), name="mine")
    monkeypatch.setenv("TIDEMARK_SPARK_MODE", "warm")
    with pytest.raises(InvalidArgument, match="deploy mode cluster"):
        SparkJob(TidemarkHook().settings).require_ready()


def _bootstrap(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The bootstrap in a directory of its own, as in a container that has no Tidemark and no Spark."""
    container = home / "container"
    container.mkdir(exist_ok=True)
    (container / "pyspark.py").write_text("import tidemark\nraise SystemExit(f'began in {tidemark.__file__}')")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=container,
        env={**environment, "PYTHONPATH": str(container)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
