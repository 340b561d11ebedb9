"""A JobSpec run by a Spark driver in a process group of its own, and its JobResult."""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import tidemark
from tidemark.errors import (
    DriverJvmNeeded,
    InvalidArgument,
    JobCancelled,
    JobDeadlineExceeded,
    JobDied,
    JobFilesUnusable,
    JobLeftNoResult,
    JobMayRunOn,
    SparkNotFound,
    SparkServerUnreachable,
    TidemarkError,
    WarmSparkEnded,
)
from tidemark.hooks._archive import forgetting_the_archive
from tidemark.hooks._drivers import Drivers, JobFiles
from tidemark.hooks._files import private_directory, write_private
from tidemark.hooks._in_cluster import InCluster
from tidemark.hooks._job_files import alive, local_path, sweep_hourly, worked_for
from tidemark.hooks._metrics import job_ended
from tidemark.hooks._process_group import Driver, end_group
from tidemark.hooks.spark_mode import SparkMode, mode_of, require_submitted
from tidemark.model.codec import from_json, to_json
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.source_address import SourceAddress
from tidemark.model.source_connection import SourceConnection
from tidemark.streams.worker.clusters import DriverGoesOn
from tidemark.warm_spark.scratch import remove_scratch

if TYPE_CHECKING:
    from tidemark.hooks.settings import TidemarkSettings
    from tidemark.hooks.warm_spark import WarmSpark
    from tidemark.hooks.yarn_job import YarnDrivers
    from tidemark.streams.planning.executors import ExecutorBounds

__all__ = ["SparkJob"]

_APPLICATION = Path(tidemark.__file__).parent / "jobs" / "__main__.py"
_SPEC = "spec.json"
_DEADLINE_GRACE_SECONDS = 30.0  # longer than the job's own grace

log = logging.getLogger(__name__)


class SparkJob:
    """A submitter. `tidemark.streams.worker` calls `run`, and `on_kill` calls `cancel`.

    The driver runs on this host, on the Spark of the settings. That is a JVM of spark-submit, with executors perhaps on
    a cluster, or a running Spark Connect server. With deploy mode cluster the driver runs in YARN. `python_path` is
    added to the PYTHONPATH of a driver on this host, so that it can import the modules of DAG files. `source`: the
    database or connection that the job reads, passed by environment. `packages`: jars that the job needs beside those
    of the settings. `factor`: the scale factor of query acceleration; None for none.
    """

    def __init__(
        self,
        settings: TidemarkSettings,
        *,
        python_path: Sequence[str] = (),
        source: SourceAddress | SourceConnection | None = None,
        packages: Sequence[str] = (),
        factor: int | None = None,
    ) -> None:
        self._settings = settings
        self._factor = factor
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

        Raises errors of `require_ready` before the start, and WarmSparkBusy for a job without a slot until its
        deadline. After the start it raises JobDied, JobLeftNoResult, JobCancelled or JobDeadlineExceeded. Then the
        whole process group has ended, and its work in a Spark Connect server. JobMayRunOn means that the
        server did not answer, and JobFilesUnusable a full disk of this host.
        """
        began = time.monotonic()
        outcome: str | None = "failed"
        try:
            answer = self._run(spec)
            outcome = "done" if answer.error is None else answer.error.error
            return answer
        except TidemarkError as error:
            outcome = type(error).__name__
            raise
        except DriverGoesOn:
            outcome = None
            raise
        except ConnectionError:  # of Airflow's supervisor, not of a file
            raise
        except OSError as error:
            outcome = JobFilesUnusable.__name__
            directory = str(local_path(spec.result_uri).parent)
            raise JobFilesUnusable(key=spec.about, directory=directory, problem=str(error)) from error
        finally:
            self._submission = None  # its group has ended, and the number may be another's
            if outcome is not None:
                job_ended(spec, time.monotonic() - began, outcome)

    def _run(self, spec: JobSpec) -> JobResult:
        mode = self._ready()
        if self.in_cluster:
            with self._deadline(spec):
                return InCluster(self.drivers, self.cluster, self._watched, lambda: self._stopped_because).run(spec)
        answer = self._warm_attempts(spec) if mode is SparkMode.WARM else self._attempt(spec, mode)
        if mode is SparkMode.WARM and _failed_by(answer, DriverJvmNeeded):
            log.info("The job needs the JVM of its driver, so it is submitted; spark_mode=submit saves the first try.")
            answer = self._attempt(spec, SparkMode.SUBMIT)
        return answer

    def _warm_attempts(self, spec: JobSpec) -> JobResult:
        """A job whose server ended or did not answer begins again in another one, once.

        The memory that another job took may have ended it. The job that takes too much fails with its second server.
        """
        try:
            answer = self._attempt(spec, SparkMode.WARM)
        except WarmSparkEnded as ended:
            log.warning("%s The job begins again in another one.", ended)
        else:
            if not _failed_by(answer, SparkServerUnreachable):
                return answer
            log.warning("The warm Spark of this host did not answer; the job begins again in a new one.")
            self._retire_the_warm_spark()
        return self._attempt(spec, SparkMode.WARM)

    def _attempt(self, spec: JobSpec, mode: SparkMode) -> JobResult:
        self._runs_on = None
        result = local_path(spec.result_uri)
        directory = self._prepare(spec, result)
        with worked_for(directory), alive(directory) as inherited:
            files = JobFiles(directory, (str(directory / _SPEC),), inherited)
            due = partial(self._stop_if_due, spec, time.monotonic())
            with self._driver(
                mode, files, due, about=spec.about, planned_bytes=spec.planned_bytes, is_long=spec.is_long
            ) as driver:
                self._submission = driver
                with (
                    forgetting_the_archive(directory),
                    self._deadline(spec),
                    self._ending_the_session(driver, result),
                    self._ending_the_group(driver),
                ):
                    driver.submit(str(_APPLICATION), cwd=str(directory))
        failed = True
        try:
            answer = self._answer(spec, result, driver)
            failed = answer.error is not None
            return answer
        finally:
            remove_scratch(directory)
            if failed:
                log.error("Spark's own log is kept in %s", driver.spark_log)
            else:
                shutil.rmtree(directory, ignore_errors=True)
                result.unlink(missing_ok=True)

    def cancel(self) -> None:
        """Sets the cancel marker, then ends the process group: spark-submit, the JVM and the Python driver. An
        application in YARN is killed there.
        """
        self._stop("cancelled")

    def require_ready(self) -> None:
        """Nothing, if a job could start. Raises JavaNotFound, SparkNotFound, ConnectClientNotFound, SparkMasterUnfit,
        NotYetSupported, InvalidArgument, DirectoryNotPrivate, AirflowNotFoundException.
        """
        self._ready()

    def _ready(self) -> SparkMode:
        from tidemark.hooks._submission import require_client_mode
        from tidemark.hooks.connect_driver import require_connect_client
        from tidemark.hooks.java import require_java

        private_directory(self._settings.jobs_root)
        drivers = self.drivers
        mode = mode_of(self._settings, drivers.connection)
        if self._factor is not None:
            require_submitted(mode, self._factor)
        if mode is SparkMode.SUBMIT:
            drivers.submitted_settings()
        if mode is not SparkMode.SUBMIT:
            require_connect_client()
        if mode is SparkMode.CONNECT:
            return mode
        require_client_mode(self._settings.spark_conf.get("spark.submit.deployMode"))
        if self.in_cluster:
            self._require_cluster(mode)
        environment = drivers.environment()
        require_java(environment)
        if shutil.which("spark-submit", path=environment["PATH"]) is None:
            raise SparkNotFound(command="pip install 'airflow-provider-tidemark[spark]'")
        return mode

    @cached_property
    def drivers(self) -> Drivers:
        """The maker of drivers; the Spark connection is read once. Raises errors of `require_ready`."""
        from tidemark.hooks._submission import spark_connection

        connection = spark_connection(self._settings.spark_conn_id, self._settings.spark_master)
        return Drivers(self._settings, connection, self._python_path, self._source, self._packages, self._factor)

    @property
    def executor_bounds(self) -> ExecutorBounds | None:
        """The bounds within which jobs get executors by their bytes; None if nothing is planned. Raises errors of
        `require_ready`.
        """
        submitted = mode_of(self._settings, self.drivers.connection) is SparkMode.SUBMIT
        return self.drivers.executor_bounds if submitted else None

    @property
    def in_cluster(self) -> bool:
        """Whether drivers run in YARN. Raises errors of `require_ready`."""
        from tidemark.hooks._submission import is_cluster_mode

        return is_cluster_mode(self.drivers.connection)

    @cached_property
    def cluster(self) -> YarnDrivers:
        """The drivers in YARN. Raises SparkMasterUnfit if nobody names its REST interface."""
        from tidemark.hooks._cluster_files import ClusterFiles
        from tidemark.hooks._yarn_address import resource_manager
        from tidemark.hooks.yarn_job import YarnDrivers

        return YarnDrivers(resource_manager(self.drivers.connection), ClusterFiles(self._settings))

    def _require_cluster(self, mode: SparkMode) -> None:
        if mode is not SparkMode.SUBMIT:
            problem = "the Spark connection has deploy mode cluster, so each job is submitted; leave spark_mode empty"
            raise InvalidArgument(argument="spark_mode", value=mode.value, problem=problem)
        self.cluster  # noqa: B018 - its address is known

    def warm_spark(self) -> WarmSpark:
        """The warm Spark of this host for these jobs, whether or not it runs. Raises InvalidArgument if they run
        otherwise, and errors of `require_ready`.
        """
        mode = self._ready()
        if mode is not SparkMode.WARM:
            problem = "jobs of this connection do not run in the warm Spark of a host"
            raise InvalidArgument(argument="spark_mode", value=mode.value, problem=problem)
        return self.drivers.warm_spark()

    @contextlib.contextmanager
    def _driver(
        self,
        mode: SparkMode,
        files: JobFiles,
        stop_if_due: Callable[[], None],
        *,
        about: str,
        planned_bytes: int | None = None,
        is_long: bool = False,
    ) -> Iterator[Driver]:
        """A driver that has not started yet. In the warm Spark it has a slot, for which this waits."""
        drivers = self.drivers
        if left_out := drivers.known().left_out_text:
            log.info("Left out of the driver's environment (driver_environment names what it needs): %s", left_out)
        if mode is not SparkMode.WARM:
            at_a_server = mode is SparkMode.CONNECT
            yield drivers.remote(files) if at_a_server else drivers.submitted(files, planned_bytes)
            return
        say = partial(log.info, "%s")
        taken = drivers.warm_spark().take(stop_if_due=stop_if_due, say=say, is_long=is_long)
        try:
            yield drivers.warm(files, taken, about)
        finally:
            taken.slot.release()

    def _prepare(self, spec: JobSpec, result: Path) -> Path:
        sweep_hourly((self._settings.jobs_root, *self._settings.former_jobs_roots), datetime.now(UTC))
        directory = private_directory(result.parent) / result.name.partition(".")[0]
        directory.mkdir(mode=0o700, exist_ok=True)
        result.unlink(missing_ok=True)
        self._cancel_marker = local_path(spec.cancel_uri)
        write_private(directory / _SPEC, to_json(spec))
        return directory

    def _retire_the_warm_spark(self) -> None:
        from tidemark.hooks.warm_driver import WarmDriver

        if isinstance(self._submission, WarmDriver):
            self._submission.retire_server()

    def _stop_if_due(self, spec: JobSpec, began: float) -> None:
        """To be asked while the job waits for its slot."""
        if self._stopped_because == "cancelled":
            raise JobCancelled(key=spec.about)
        if datetime.now(UTC) >= spec.deadline:
            raise self.drivers.warm_spark().busy(spec, time.monotonic() - began)

    def _answer(self, spec: JobSpec, result: Path, submission: Driver) -> JobResult:
        from tidemark.hooks.warm_driver import WarmDriver

        about = spec.about
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
        if isinstance(submission, WarmDriver) and submission.server_ended:
            raise WarmSparkEnded(key=about, log=submission.server_log)
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
    def _watched(self, submission: Driver) -> Iterator[None]:
        """A cancel ends the submission, and so does the end of the context."""
        self._submission = submission
        with self._ending_the_group(submission):
            yield

    @contextlib.contextmanager
    def _ending_the_group(self, submission: Driver) -> Iterator[None]:
        """Ends the process group after the context. So no Python driver still writes after an exception here (such as a
        timeout) or after the JVM's death.
        """
        try:
            yield
        finally:
            end_group(submission)

    @contextlib.contextmanager
    def _ending_the_session(self, submission: Driver, result: Path | None = None) -> Iterator[None]:
        """Ends the driver's session in a server, unless the driver has written its `result` and so left it."""
        from tidemark.hooks.connect_driver import ConnectDriver

        try:
            yield
        finally:
            left = result is not None and result.exists()
            if isinstance(submission, ConnectDriver) and not submission.settle(left=left):
                self._runs_on = submission.server

    def _stop(self, why: str) -> None:
        self._stopped_because = self._stopped_because or why
        if self._cancel_marker is not None and self._cancel_marker.parent.is_dir():
            self._cancel_marker.touch()
        if self._submission is not None:
            end_group(self._submission)
        if "cluster" in vars(self):
            self.cluster.stop(why)


def _failed_by(answer: JobResult, kind: type[TidemarkError]) -> bool:
    return answer.error is not None and answer.error.error == kind.__name__
