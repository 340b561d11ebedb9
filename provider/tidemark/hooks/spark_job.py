"""A JobSpec run by a Spark driver in a process group of its own, and its JobResult."""

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
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from uuid import uuid4

import tidemark
from tidemark.errors import (
    JobCancelled,
    JobDeadlineExceeded,
    JobDied,
    JobLeftNoResult,
    JobMayRunOn,
    SparkNotFound,
    TidemarkError,
)
from tidemark.hooks._archive import forgetting_the_archive
from tidemark.hooks._driver_environment import DriverEnvironment, driver_environment
from tidemark.hooks._files import private_directory, write_private
from tidemark.hooks._job_files import alive, sweep_hourly
from tidemark.metrics import job_ended
from tidemark.model.codec import from_json, to_json
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.source_address import SourceAddress
from tidemark.model.spark import DELTA_SETTINGS

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from tidemark.hooks.settings import TidemarkSettings

__all__ = ["SOURCE", "STORAGE_OPTIONS", "SparkJob", "local_path"]

STORAGE_OPTIONS = "TIDEMARK_STORAGE_OPTIONS"
SOURCE = "TIDEMARK_SOURCE"
_APPLICATION = Path(tidemark.__file__).parent / "jobs" / "__main__.py"
_SPEC = "spec.json"
_SPARK_LOG = "spark.log"
_DEADLINE_GRACE_SECONDS = 30.0  # longer than the job's own grace
_TERM_SECONDS = 5.0

log = logging.getLogger(__name__)


class Driver(Protocol):
    """A driver in a process group of its own, by spark-submit or behind Spark Connect."""

    spark_log: Path
    tail: deque[str]

    @property
    def process_id(self) -> int | None:
        """The leader of the process group; None before the start."""

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while it runs."""

    def submit(self, application: str, *, cwd: str) -> object:
        """Runs `application` in `cwd` to its end, with any exit code."""


class SparkJob:
    """A submitter. `tidemark.streams.worker` calls `run`, and `on_kill` calls `cancel`.

    The driver runs on this host, on the Spark of the settings. That is a JVM of spark-submit, with executors perhaps on
    a cluster, or a running Spark Connect server. `python_path` is added to the driver's PYTHONPATH, so that it can
    import the modules of DAG files. `source`: the database that a replication reads, passed by environment. `packages`:
    jars that the job needs beside those of the settings.
    """

    def __init__(
        self,
        settings: TidemarkSettings,
        *,
        python_path: Sequence[str] = (),
        source: SourceAddress | None = None,
        packages: Sequence[str] = (),
    ) -> None:
        self._settings = settings
        self._source = source
        self._packages = tuple(packages)
        self._python_path = tuple(python_path)
        self._submission: Driver | None = None
        self._cancel_marker: Path | None = None
        self._stopped_because: str | None = None
        self._runs_on: str | None = None

    def run(self, spec: JobSpec) -> JobResult:
        """The result of the job after its end. It has the error of a failed job.

        Beside `spec.result_uri` the job has a directory of its own: spec (mode 0600), archive and Spark's log. It is
        removed after a success; otherwise spec and log are kept for seven days. Only the worker's user can write result
        and directory. An older result is removed first, and never trusted. Leftovers of dead jobs are removed once an
        hour.

        Raises errors of `require_ready` before the start, and JobDied, JobLeftNoResult, JobCancelled or
        JobDeadlineExceeded after it. Then the whole process group has ended, and its work in a Spark Connect server.
        JobMayRunOn means that the server did not answer.
        """
        began, outcome = time.monotonic(), "failed"
        try:
            answer = self._run(spec)
            outcome = "done" if answer.error is None else answer.error.error
            return answer
        except TidemarkError as error:
            outcome = type(error).__name__
            raise
        finally:
            job_ended(spec, time.monotonic() - began, outcome)

    def _run(self, spec: JobSpec) -> JobResult:
        self.require_ready()
        self._runs_on = None
        result = local_path(spec.result_uri)
        directory = self._prepare(spec, result)
        with alive(directory) as inherited:
            submission = self._submission = self._new_submission(directory, [str(directory / _SPEC)], inherited)
            with (
                forgetting_the_archive(directory),
                self._deadline(spec),
                self._ending_the_session(submission, result),
                self._ending_the_group(submission),
            ):
                submission.submit(str(_APPLICATION), cwd=str(directory))
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
        """Sets the cancel marker, then ends the process group: spark-submit, the JVM and the Python driver."""
        self._stop("cancelled")

    def require_ready(self) -> None:
        """Nothing, if a job could start. Raises JavaNotFound, SparkNotFound, ConnectClientNotFound, SparkMasterUnfit,
        NotYetSupported, DirectoryNotPrivate, AirflowNotFoundException.
        """
        from tidemark.hooks._submission import require_client_mode, spark_connection
        from tidemark.hooks.connect_driver import is_connect, require_connect_client
        from tidemark.hooks.java import require_java

        private_directory(self._settings.jobs_root)
        if is_connect(spark_connection(self._settings.spark_conn_id, self._settings.spark_master)):
            require_connect_client()
            return
        require_client_mode(self._settings.spark_conf.get("spark.submit.deployMode"))
        environment = self._environment()
        require_java(environment)
        if shutil.which("spark-submit", path=environment["PATH"]) is None:
            raise SparkNotFound(command="pip install 'airflow-provider-tidemark[spark]'")

    def _prepare(self, spec: JobSpec, result: Path) -> Path:
        sweep_hourly((self._settings.jobs_root, *self._settings.former_jobs_roots), datetime.now(UTC))
        directory = private_directory(result.parent) / result.name.partition(".")[0]
        directory.mkdir(mode=0o700, exist_ok=True)
        result.unlink(missing_ok=True)
        self._cancel_marker = local_path(spec.cancel_uri)
        write_private(directory / _SPEC, to_json(spec))
        return directory

    def _new_submission(self, directory: Path, arguments: Sequence[str], inherited: Sequence[int] = ()) -> Driver:
        from tidemark.hooks._submission import spark_connection
        from tidemark.hooks.connect_driver import is_connect

        connection = spark_connection(self._settings.spark_conn_id, self._settings.spark_master)
        if left_out := self._known().left_out_text:
            log.info("Left out of the driver's environment (driver_environment names what it needs): %s", left_out)
        submit = self._connect_driver if is_connect(connection) else self._spark_submit
        return submit(connection, directory, arguments, inherited)

    def _spark_submit(
        self, connection: Connection, directory: Path, arguments: Sequence[str], inherited: Sequence[int]
    ) -> Driver:
        from tidemark.hooks._archive import spark_side_archive
        from tidemark.hooks._secrets import SECRET_SPARK_SETTINGS
        from tidemark.hooks._submission import Submission, cluster_settings, master_of

        settings = self._settings
        shown = {"spark.redaction.regex": SECRET_SPARK_SETTINGS}
        fitting = _LOCAL_SETTINGS if master_of(connection).startswith("local") else cluster_settings(connection)
        return Submission(
            connection,
            spark_log=directory / _SPARK_LOG,
            conf={**_JOB_SETTINGS, **shown, **fitting, **DELTA_SETTINGS, **settings.spark_conf},
            packages=",".join(filter(None, (settings.spark_packages, *self._packages))) or None,
            py_files=str(spark_side_archive(directory)),
            application_args=list(arguments),
            environment=self._environment(),
            inherited=inherited,
            name="tidemark",
        )

    def _connect_driver(
        self, connection: Connection, directory: Path, arguments: Sequence[str], inherited: Sequence[int]
    ) -> Driver:
        """A driver with a new session, whose id is chosen here, so that it can be ended after the driver's death."""
        from tidemark.hooks.connect_driver import SPARK_SETTINGS, ConnectDriver, server_url

        environment = self._environment()
        ours = str(Path(tidemark.__file__).parent.parent)
        environment["PYTHONPATH"] = os.pathsep.join(entry for entry in (environment.get("PYTHONPATH"), ours) if entry)
        environment[SPARK_SETTINGS] = json.dumps(dict(self._settings.spark_conf))
        return ConnectDriver(
            server_url(connection, str(uuid4())),
            spark_log=directory / _SPARK_LOG,
            arguments=arguments,
            environment=environment,
            inherited=inherited,
        )

    def _known(self) -> DriverEnvironment:
        """The part of the worker's environment that the driver gets."""
        return driver_environment(os.environ, self._settings.driver_environment)

    def _environment(self) -> dict[str, str]:
        """The driver's whole environment. Only it has secrets. Worker and driver use one Python; pip's own spark-submit
        is last on the PATH.
        """
        known = self._known().passed
        environment = {
            **known,
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PATH": os.pathsep.join((known.get("PATH", os.defpath), sysconfig.get_path("scripts"))),
        }
        if self._python_path:
            more = [entry for entry in known.get("PYTHONPATH", "").split(os.pathsep) if entry]
            environment["PYTHONPATH"] = os.pathsep.join((*self._python_path, *more))
        if self._settings.storage_options:
            environment[STORAGE_OPTIONS] = json.dumps(dict(self._settings.storage_options))
        if self._source is not None:
            environment[SOURCE] = to_json(self._source)
        return environment

    def _answer(self, spec: JobSpec, result: Path, submission: Driver) -> JobResult:
        about = str(spec.key) if spec.key is not None else spec.kind
        if result.exists():
            return from_json(JobResult, result.read_text(encoding="utf-8"))
        if self._runs_on:
            raise JobMayRunOn(key=about, server=self._runs_on, deadline=spec.deadline)
        if self._stopped_because == "cancelled":
            raise JobCancelled(key=about)
        if self._stopped_because == "deadline":
            raise JobDeadlineExceeded(key=about, deadline=spec.deadline)
        if submission.exit_code == 0:
            raise JobLeftNoResult(key=about, result_uri=spec.result_uri)
        raise JobDied(key=about, exit_code=submission.exit_code, tail="\n".join(submission.tail))

    @contextlib.contextmanager
    def _deadline(self, spec: JobSpec) -> Iterator[None]:
        """Ends a job that has not stopped itself shortly after its deadline (PROTOCOL step 9)."""
        left = (spec.deadline - datetime.now(UTC)).total_seconds()
        timer = threading.Timer(max(left, 0.0) + _DEADLINE_GRACE_SECONDS, self._stop, ("deadline",))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    @contextlib.contextmanager
    def _ending_the_group(self, submission: Driver) -> Iterator[None]:
        """Ends the process group after the context. So no Python driver still writes after an exception here (such as a
        timeout) or after the JVM's death.
        """
        try:
            yield
        finally:
            _end_group(submission)

    @contextlib.contextmanager
    def _ending_the_session(self, submission: Driver, result: Path | None = None) -> Iterator[None]:
        """Ends the driver's session in a server, unless the driver has written its `result` and so left it."""
        from tidemark.hooks.connect_driver import ConnectDriver

        try:
            yield
        finally:
            left = result is not None and result.exists()
            if isinstance(submission, ConnectDriver) and not left and not submission.end_session():
                self._runs_on = submission.server

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


def _end_group(submission: Driver) -> None:
    """Sends SIGTERM, and SIGKILL to the rest after some seconds. A group that is gone is no error."""
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
