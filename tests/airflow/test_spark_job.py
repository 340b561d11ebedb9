"""A submitted job: what reaches the task log, and what a bad end of the driver turns into."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from tidemark.errors import (
    JavaNotFound,
    JobCancelled,
    JobDeadlineExceeded,
    JobDied,
    JobFilesUnusable,
    JobLeftNoResult,
    SparkNotFound,
)
from tidemark.hooks.spark_job import SparkJob
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.model.jobs import JobSpec
from tidemark.model.statements import TransactionKey
from tidemark.streams.model.transaction_jobs import WRITE

pytestmark = pytest.mark.airflow
StandIn = Callable[[str], Path]

KEY = TransactionKey("d", "r", "t")
NOISE = 'echo "26/11/21 INFO SparkContext: Running"; echo "WARN ivy" >&2'
RESULT = """python3 - "$spec" <<'PY'
import json, sys
spec = json.load(open(sys.argv[1]))
json.dump({"report": {"seen": spec["store_id"]}, "error": None}, open(spec["result_uri"], "w"))
PY"""


@pytest.fixture
def job(hook: TidemarkHook) -> SparkJob:
    return SparkJob(hook.settings)


def spec_in(directory: Path, *, seconds: float = 60) -> JobSpec:
    return JobSpec(
        kind=WRITE.name,
        entry=WRITE.entry,
        request={},
        store_id="the store",
        workspace=str(directory / "workspace"),
        result_uri=str(directory / "jobs" / "one.result.json"),
        cancel_uri=str(directory / "jobs" / "one.cancel"),
        deadline=datetime.now(UTC) + timedelta(seconds=seconds),
        key=KEY,
    )


def test_a_job_that_ends_well_hands_back_its_result_and_leaves_nothing(
    job: SparkJob, spark_submit: StandIn, tmp_path: Path
) -> None:
    spark_submit(RESULT)
    assert job.run(spec_in(tmp_path)).report == {"seen": "the store"}
    assert list((tmp_path / "jobs").iterdir()) == []


def test_only_lines_of_the_job_reach_the_task_log(
    job: SparkJob, spark_submit: StandIn, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spark_submit(f'{NOISE}; echo "tidemark: statement 1 of 2 written"; {RESULT}')
    job.run(spec_in(tmp_path))
    said = capsys.readouterr().out
    assert "statement 1 of 2 written" in said
    assert "SparkContext" not in said
    assert "WARN ivy" not in said


def test_a_driver_that_dies_is_job_died_with_its_exit_code_and_last_lines(
    job: SparkJob, spark_submit: StandIn, tmp_path: Path
) -> None:
    spark_submit(f'{NOISE}; echo "java.lang.OutOfMemoryError: Java heap space"; exit 3')
    with pytest.raises(JobDied) as died:
        job.run(spec_in(tmp_path))
    assert died.value.exit_code == 3
    assert died.value.key == str(KEY)
    assert "Java heap space" in died.value.tail
    assert "OutOfMemoryError" in (tmp_path / "jobs" / "one" / "spark.log").read_text()
    assert sorted(os.listdir(tmp_path / "jobs" / "one")) == ["alive", "spark.log", "spec.json", "worker"]


def test_files_of_a_job_that_cannot_be_written_are_named_before_it_starts(
    job: SparkJob, spark_submit: StandIn, tmp_path: Path
) -> None:
    started = spark_submit(RESULT)
    (tmp_path / "jobs").mkdir(mode=0o700)
    (tmp_path / "jobs" / "one").symlink_to("/dev/full")
    with pytest.raises(JobFilesUnusable, match="A retry continues") as failed:
        job.run(spec_in(tmp_path))
    assert (failed.value.key, failed.value.directory) == (str(KEY), str(tmp_path / "jobs"))
    assert not started.exists()


def test_a_job_whose_log_cannot_be_written_goes_on_and_says_so_once(
    job: SparkJob, spark_submit: StandIn, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spark_submit(f"mkdir {tmp_path}/jobs/one/spark.log; {NOISE}; {NOISE}; {RESULT}")
    assert job.run(spec_in(tmp_path)).report == {"seen": "the store"}
    assert capsys.readouterr().out.count("lines of Spark's own log are lost") == 1


def test_a_driver_that_is_killed_is_job_died_and_leaves_no_temporary_files(
    job: SparkJob, spark_submit: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary files"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    told = tmp_path / "told"
    spark_submit(f"echo $SPARK_SUBMIT_OPTS > {told}; touch '{temporary}'/tidemark-spark-*/jar; kill -9 $$")
    with pytest.raises(JobDied) as died:
        job.run(spec_in(tmp_path))
    assert died.value.exit_code == -9
    assert f'"-Djava.io.tmpdir={temporary}/tidemark-spark-' in told.read_text()
    assert list(temporary.iterdir()) == []


def test_a_driver_that_ends_well_without_a_result_is_job_left_no_result(
    job: SparkJob, spark_submit: StandIn, tmp_path: Path
) -> None:
    spark_submit("exit 0")
    with pytest.raises(JobLeftNoResult) as left:
        job.run(spec_in(tmp_path))
    assert left.value.result_uri.endswith("one.result.json")


def test_a_result_of_somebody_else_is_not_taken_for_this_jobs(
    job: SparkJob, spark_submit: StandIn, tmp_path: Path
) -> None:
    spark_submit("exit 0")
    spec = spec_in(tmp_path)
    Path(spec.result_uri).parent.mkdir()
    Path(spec.result_uri).write_text('{"report": {}, "error": null}')
    with pytest.raises(JobLeftNoResult):
        job.run(spec)


def test_an_error_of_the_job_comes_back_in_the_result_whatever_the_exit_code(
    job: SparkJob, spark_submit: StandIn, tmp_path: Path
) -> None:
    error = '{"error": "JobFailed", "facts": {"error": "E", "message": "m"}, "message": "m"}'
    result = f'{{"report": {{}}, "error": {error}}}'
    spark_submit(f"echo '{result}' > {tmp_path}/jobs/one.result.json; exit 1")
    answer = job.run(spec_in(tmp_path))
    assert answer.error is not None
    assert answer.error.error == "JobFailed"


def test_cancelling_ends_the_whole_process_group_and_leaves_a_marker(
    job: SparkJob, spark_submit: StandIn, tmp_path: Path
) -> None:
    child = tmp_path / "child"
    spark_submit(f"sleep 300 & echo $! > {child}; wait")
    spec = spec_in(tmp_path)
    threading.Thread(target=_cancel_when, args=(child, job)).start()
    with pytest.raises(JobCancelled):
        job.run(spec)
    assert Path(spec.cancel_uri).exists()
    assert not _alive(int(child.read_text()))


def test_a_cancel_after_a_job_signals_no_process_group_whose_number_may_be_anothers(
    job: SparkJob, spark_submit: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark_submit("exit 1")
    with pytest.raises(JobDied):
        job.run(spec_in(tmp_path))
    signalled: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda group, number: signalled.append(group))
    job.cancel()
    assert signalled == []


def test_a_driver_that_outlives_its_jvm_is_ended_before_the_worker_goes_on(
    job: SparkJob, spark_submit: StandIn, tmp_path: Path
) -> None:
    child = tmp_path / "child"
    spark_submit(f"sleep 300 > /dev/null 2>&1 & echo $! > {child}; exit 1")
    with pytest.raises(JobDied):
        job.run(spec_in(tmp_path))
    assert not _alive(int(child.read_text()))


def test_a_job_that_does_not_stop_at_its_deadline_is_ended(
    job: SparkJob, spark_submit: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemark.hooks.spark_job._DEADLINE_GRACE_SECONDS", 0.2)
    spark_submit("sleep 300")
    with pytest.raises(JobDeadlineExceeded):
        job.run(spec_in(tmp_path, seconds=0.2))


def test_the_spec_is_private_and_storage_options_travel_by_environment_only(
    spark_submit: StandIn, tmp_path: Path, hook: TidemarkHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = '{"conn_type": "tidemark", "extra": {"storage_options": {"secret": "s3cr3t"}}}'
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", extra)
    started = spark_submit(
        f'cp -p "$spec" {tmp_path}/kept; echo "$TIDEMARK_STORAGE_OPTIONS" > {tmp_path}/env; {RESULT}'
    )
    settings = TidemarkHook().settings
    SparkJob(settings).run(spec_in(tmp_path))
    assert stat.S_IMODE((tmp_path / "kept").stat().st_mode) == 0o600
    assert "s3cr3t" in (tmp_path / "env").read_text()
    assert "s3cr3t" not in (tmp_path / "kept").read_text() + started.read_text() + repr(settings)


def test_a_missing_java_is_said_with_the_command_that_installs_it(
    job: SparkJob, spark_submit: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = spark_submit("exit 0")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(JavaNotFound, match="openjdk-17"):
        job.run(spec_in(tmp_path))
    assert not started.exists()


def test_an_old_java_is_java_not_found(job: SparkJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    (tmp_path / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="1.8.0_392"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaNotFound, match=r"1\.8"):
        job.require_ready()


def test_a_missing_spark_submit_is_said(job: SparkJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", os.environ.get("JAVA_HOME", ""))
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    java = Path(os.path.realpath("/usr/bin/java")).parent
    monkeypatch.setenv("PATH", str(java))
    with pytest.raises(SparkNotFound):
        job.require_ready()


def test_an_unknown_spark_connection_is_an_error_and_never_yarn(
    hook: TidemarkHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.exceptions import AirflowNotFoundException

    tidemark = '{"conn_type": "tidemark", "extra": {"spark_conn_id": "no_such_spark"}}'
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", tidemark)
    with pytest.raises(AirflowNotFoundException, match="no_such_spark"):
        SparkJob(TidemarkHook().settings).require_ready()


def _cancel_when(there: Path, job: SparkJob) -> None:
    while not there.exists():
        time.sleep(0.05)
    time.sleep(0.2)
    job.cancel()


def _alive(process_id: int) -> bool:
    return psutil.pid_exists(process_id) and psutil.Process(process_id).status() != psutil.STATUS_ZOMBIE
