"""Runs a JobSpec as a Spark driver in a process group of its own, and hands back its JobResult."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import signal
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import tidemark
from tidemark.errors import JobCancelled, JobDeadlineExceeded, JobDied, JobLeftNoResult, SparkNotFound
from tidemark.model.codec import from_json, to_json
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.spark import DELTA_SETTINGS

if TYPE_CHECKING:
    from tidemark.hooks._submission import Submission
    from tidemark.hooks.settings import TidemarkSettings

__all__ = ["STORAGE_OPTIONS", "SparkJob", "local_path"]

STORAGE_OPTIONS = "TIDEMARK_STORAGE_OPTIONS"
_APPLICATION = Path(tidemark.__file__).parent / "jobs" / "__main__.py"
_SPEC = "spec.json"
_DEADLINE_GRACE_SECONDS = 30.0  # more than the job gives itself
_TERM_SECONDS = 5.0

log = logging.getLogger(__name__)


class SparkJob:
    """A submitter: `run` is what `tidemark.transactions` calls, `cancel` what `on_kill` calls.

    The driver runs on this host, on the Spark of the settings. `python_path` is added to the driver's PYTHONPATH, so
    that it can import what a DAG file can.
    """

    def __init__(self, settings: TidemarkSettings, *, python_path: Sequence[str] = ()) -> None:
        self._settings = settings
        self._python_path = tuple(python_path)
        self._submission: Submission | None = None
        self._cancel_marker: Path | None = None
        self._stopped_because: str | None = None

    def run(self, spec: JobSpec) -> JobResult:
        """Submit and wait; a failed job's error comes back in the result.

        Beside `spec.result_uri` the job has a directory of its own: spec (mode 0600) and Spark's log. It is removed
        when the job went well and kept otherwise. Raises what `require_ready` raises before anything is started, and
        JobDied, JobLeftNoResult, JobCancelled or JobDeadlineExceeded after: then the whole process group has ended. A
        result that is there already is never trusted: it is removed first.
        """
        self.require_ready()
        result = local_path(spec.result_uri)
        directory = self._prepare(spec, result)
        submission = self._submission = self._new_submission(directory, [str(directory / _SPEC)])
        with self._deadline(spec), self._ending_the_group(submission):
            self._submit(submission, directory)
        failed = True
        try:
            answer = self._answer(spec, result, submission)
            failed = answer.error is not None
            return answer
        finally:
            if failed:
                log.error("Spark's own log is kept in %s", submission.spark_log)
            else:
                shutil.rmtree(directory, ignore_errors=True)
                result.unlink(missing_ok=True)

    def cancel(self) -> None:
        """Tell the job to stop, then end its process group: spark-submit, the JVM and the Python driver."""
        self._stop("cancelled")

    def require_ready(self) -> None:
        """Raises JavaNotFound, SparkNotFound, NotYetSupported, AirflowNotFoundException where no job could start."""
        from tidemark.hooks._submission import spark_connection
        from tidemark.hooks.java import require_java

        spark_connection(self._settings.spark_conn_id, self._settings.spark_master)
        environment = {**os.environ, **self._environment()}
        require_java(environment)
        if shutil.which("spark-submit", path=environment["PATH"]) is None:
            raise SparkNotFound(command="pip install 'airflow-provider-tidemark[spark]'")

    def _prepare(self, spec: JobSpec, result: Path) -> Path:
        directory = result.parent / result.name.partition(".")[0]
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        result.unlink(missing_ok=True)
        self._cancel_marker = local_path(spec.cancel_uri)
        _write_private(directory / _SPEC, to_json(spec))
        return directory

    def _new_submission(self, directory: Path, arguments: Sequence[str]) -> Submission:
        from tidemark.hooks._archive import spark_side_archive
        from tidemark.hooks._submission import Submission, master_of, spark_connection

        settings = self._settings
        connection = spark_connection(settings.spark_conn_id, settings.spark_master)
        small = _LOCAL_SETTINGS if master_of(connection).startswith("local") else {}
        return Submission(
            connection,
            spark_log=directory / "spark.log",
            conf={**_JOB_SETTINGS, **small, **DELTA_SETTINGS, **settings.spark_conf},
            packages=settings.spark_packages,
            py_files=str(spark_side_archive(settings.jobs_root.parent / "archives")),
            application_args=list(arguments),
            env_vars=self._environment(),
            name="tidemark",
        )

    def _environment(self) -> dict[str, str]:
        """Secrets travel here and nowhere else. Worker and driver use one Python; pip's own spark-submit comes last."""
        environment = {
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PATH": os.pathsep.join((os.environ.get("PATH", os.defpath), sysconfig.get_path("scripts"))),
        }
        if self._python_path:
            known = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
            environment["PYTHONPATH"] = os.pathsep.join((*self._python_path, *known))
        if self._settings.storage_options:
            environment[STORAGE_OPTIONS] = json.dumps(dict(self._settings.storage_options))
        return environment

    def _submit(self, submission: Submission, directory: Path) -> None:
        from airflow.sdk.exceptions import AirflowException

        # A bad exit code is judged together with what the job wrote, in _answer.
        with contextlib.suppress(AirflowException):
            submission.submit(str(_APPLICATION), start_new_session=True, cwd=str(directory))

    def _answer(self, spec: JobSpec, result: Path, submission: Submission) -> JobResult:
        about = str(spec.key) if spec.key is not None else spec.kind.value
        if result.exists():
            return from_json(JobResult, result.read_text(encoding="utf-8"))
        if self._stopped_because == "cancelled":
            raise JobCancelled(key=about)
        if self._stopped_because == "deadline":
            raise JobDeadlineExceeded(key=about, deadline=spec.deadline)
        if submission.exit_code == 0:
            raise JobLeftNoResult(key=about, result_uri=spec.result_uri)
        raise JobDied(key=about, exit_code=submission.exit_code, tail="\n".join(submission.tail))

    @contextlib.contextmanager
    def _deadline(self, spec: JobSpec) -> Iterator[None]:
        """The job stops itself at its deadline; one that cannot is ended a little later (PROTOCOL step 9)."""
        left = (spec.deadline - datetime.now(UTC)).total_seconds()
        timer = threading.Timer(max(left, 0.0) + _DEADLINE_GRACE_SECONDS, self._stop, ("deadline",))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    @contextlib.contextmanager
    def _ending_the_group(self, submission: Submission) -> Iterator[None]:
        """Neither an exception here (a timeout, say) nor a JVM that died leaves a Python driver that still writes."""
        try:
            yield
        finally:
            _end_group(submission)

    def _stop(self, why: str) -> None:
        self._stopped_because = self._stopped_because or why
        if self._cancel_marker is not None and self._cancel_marker.parent.is_dir():
            self._cancel_marker.touch()
        if self._submission is not None:
            _end_group(self._submission)


_JOB_SETTINGS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
}

# One host has few cores: Spark's defaults for a cluster would cut small tables into hundreds of tasks.
_LOCAL_SETTINGS: Mapping[str, str] = {
    "spark.sql.shuffle.partitions": "8",
    "spark.databricks.delta.snapshotPartitions": "4",
}


def local_path(uri: str) -> Path:
    """The local file of a path or canonical URI (not percent-encoded); job files are always local (client mode)."""
    return Path(uri.removeprefix("file://"))


def _write_private(file: Path, text: str) -> None:
    file.unlink(missing_ok=True)
    with open(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as target:
        target.write(text)


def _end_group(submission: Submission) -> None:
    """SIGTERM, and SIGKILL for what is left after some seconds. A group that is gone is fine."""
    group = submission.process_id
    if group is None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGTERM)
        until = time.monotonic() + _TERM_SECONDS
        while time.monotonic() < until:
            submission.exit_code  # noqa: B018 - asking reaps the leader, which would else count as alive
            os.killpg(group, 0)
            time.sleep(0.1)
        os.killpg(group, signal.SIGKILL)
