"""The drivers of jobs: Spark's settings, environment and arguments of each."""

from __future__ import annotations

import base64
import json
import os
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import tidemark
from tidemark.failpoints import KILL_AT, KILL_ONCE
from tidemark.hooks._files import write_private
from tidemark.model.codec import from_json, to_json
from tidemark.model.driver_environment import DriverEnvironment, driver_environment
from tidemark.model.source_address import SourceAddress
from tidemark.model.source_connection import SourceConnection
from tidemark.model.spark import DELTA_SETTINGS
from tidemark.model.yarn import driver_tag
from tidemark.warm_spark.scratch import make_scratch, with_scratch

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from tidemark.acceleration.planning.settings import Executors
    from tidemark.hooks._process_group import Driver
    from tidemark.hooks.settings import TidemarkSettings
    from tidemark.hooks.warm_spark import WarmSpark
    from tidemark.streams.planning.executors import ExecutorBounds
    from tidemark.warm_spark.start import Taken

__all__ = [
    "CLUSTER_ENVIRONMENT",
    "JOB_SETTINGS",
    "LOCAL_SETTINGS",
    "SOURCE",
    "SOURCE_CONNECTION",
    "SPARK_LOG",
    "STORAGE_OPTIONS",
    "Drivers",
    "JobFiles",
    "SessionOfJob",
]

STORAGE_OPTIONS = "TIDEMARK_STORAGE_OPTIONS"
SOURCE = "TIDEMARK_SOURCE"
SOURCE_CONNECTION = "TIDEMARK_SOURCE_CONNECTION"
SPARK_LOG = "spark.log"
CLUSTER_ENVIRONMENT = "TIDEMARK_SECRETS"  # a name by which Spark redacts its value
_SESSION = "session.json"

JOB_SETTINGS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
    "spark.databricks.delta.delta.log.cacheSize": "100",  # tables, each with some MB: a job may write a thousand
}

# One host has few cores: Spark's defaults for a cluster would cut small tables into hundreds of tasks.
LOCAL_SETTINGS: Mapping[str, str] = {
    "spark.sql.shuffle.partitions": "8",
    "spark.databricks.delta.snapshotPartitions": "4",
}


@dataclass(frozen=True)
class SessionOfJob:
    """The session of a job in a server. `place`: the directory of a warm server of this host, else empty."""

    session_id: str
    place: str = ""


@dataclass(frozen=True)
class JobFiles:
    """The directory of one job, the arguments of its application, and descriptors that live as long as the driver."""

    directory: Path
    arguments: tuple[str, ...]
    inherited: tuple[int, ...] = ()

    @property
    def spark_log(self) -> Path:
        """The file of all that the driver prints."""
        return self.directory / SPARK_LOG

    def keep_session(self, session: SessionOfJob) -> None:
        """Names the session before it is opened, for those that find the job without its worker."""
        write_private(self.directory / _SESSION, to_json(session))

    def session(self) -> SessionOfJob | None:
        """The session of the job, or None if it has not begun in a server."""
        try:
            text = (self.directory / _SESSION).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        kept: SessionOfJob = from_json(SessionOfJob, text)
        return kept


@dataclass(frozen=True)
class Drivers:
    """Makes the drivers of jobs with these settings, on the Spark of `connection`. `factor`: the scale factor of
    accelerated jobs, None for others.
    """

    settings: TidemarkSettings
    connection: Connection
    python_path: tuple[str, ...] = ()
    source: SourceAddress | SourceConnection | None = None
    packages: tuple[str, ...] = ()
    factor: int | None = None

    def submitted(self, files: JobFiles, planned_bytes: int | None = None) -> Driver:
        """A driver in a JVM of its own. `planned_bytes`: those of its job."""
        from tidemark.hooks._archive import spark_side_archive
        from tidemark.hooks._submission import Submission

        return Submission(
            self.connection,
            spark_log=files.spark_log,
            conf=self.submitted_settings(planned_bytes),
            packages=",".join(self._all_packages()) or None,
            py_files=str(spark_side_archive(files.directory)),
            application_args=list(files.arguments),
            environment=with_scratch(self.environment(), make_scratch(files.directory)),
            inherited=files.inherited,
            name="tidemark",
        )

    def in_cluster(self, files: JobFiles, job_id: str, planned_bytes: int | None = None) -> Driver:
        """A spark-submit that hands the driver to YARN. The driver's archive is in the lake, its environment in a
        setting that is in no argument.
        """
        from tidemark.hooks._submission import ClusterSubmission

        return ClusterSubmission(
            self.connection,
            spark_log=files.spark_log,
            conf=self.cluster_settings(job_id, planned_bytes),
            packages=",".join(self._all_packages()) or None,
            application_args=list(files.arguments),
            environment=with_scratch(self._for_python(), make_scratch(files.directory)),
            inherited=files.inherited,
            name="tidemark",
        )

    def cluster_settings(self, job_id: str, planned_bytes: int | None = None) -> dict[str, str]:
        """The settings of a driver in YARN. Any worker finds its application by the job's tag. It has one attempt,
        since Airflow's retry is the next. Raises InvalidArgument as `submitted_settings`.
        """
        conf = self.submitted_settings(planned_bytes)
        master_env = "spark.yarn.appMasterEnv."
        return {
            **conf,
            "spark.ui.enabled": self.settings.spark_conf.get("spark.ui.enabled", "true"),
            "spark.yarn.tags": ",".join(filter(None, (conf.get("spark.yarn.tags"), driver_tag(job_id)))),
            "spark.yarn.maxAppAttempts": "1",
            "spark.yarn.submit.waitAppCompletion": "false",
            f"{master_env}PYSPARK_PYTHON": conf["spark.pyspark.python"],
            f"{master_env}PYSPARK_DRIVER_PYTHON": conf["spark.pyspark.driver.python"],
            f"{master_env}{CLUSTER_ENVIRONMENT}": _in_one_word(self._of_the_job()),
        }

    def submitted_settings(self, planned_bytes: int | None = None) -> dict[str, str]:
        """The settings of a submitted driver; of an accelerated one as a factor of those that its bytes ask for. Raises
        InvalidArgument if the user's settings do not suffice.
        """
        from tidemark.acceleration.planning.settings import accelerated_settings
        from tidemark.hooks._submission import master_of

        conf = self._sized(self._conf(), planned_bytes)
        if self.factor is None:
            return conf
        return accelerated_settings(conf, master=master_of(self.connection), factor=self.factor)

    def executors(self, planned_bytes: int | None) -> Executors | None:
        """The executors of an accelerated job; None for another. Raises InvalidArgument as `submitted_settings`."""
        from tidemark.acceleration.planning.settings import executors_of
        from tidemark.hooks._submission import master_of

        if self.factor is None:
            return None
        conf = self._sized(self.settings.spark_conf, planned_bytes)
        return executors_of(conf, master=master_of(self.connection), factor=self.factor)

    @property
    def executor_bounds(self) -> ExecutorBounds | None:
        """The bounds of submitted jobs. None for a local master or a server, and if the user's settings count."""
        from tidemark.hooks._submission import has_executors
        from tidemark.streams.planning.executors import named_by

        bounds = self.settings.executors
        counts = has_executors(self.connection) and named_by(self.settings.spark_conf) is None
        return bounds if counts else None

    def _sized(self, conf: Mapping[str, str], planned_bytes: int | None) -> dict[str, str]:
        from tidemark.hooks._submission import master_of
        from tidemark.streams.planning.executors import executors_for, sized_settings

        bounds = self.executor_bounds
        if bounds is None:
            return dict(conf)
        return sized_settings(conf, executors_for(bounds, planned_bytes), master=master_of(self.connection))

    def remote(self, files: JobFiles) -> Driver:
        """A driver with a new session, whose id is chosen here, so that it can be ended after the driver's death."""
        from tidemark.hooks.connect_driver import ConnectDriver, server_url

        session = SessionOfJob(str(uuid4()))
        files.keep_session(session)
        return ConnectDriver(
            server_url(self.connection, session.session_id),
            spark_log=files.spark_log,
            arguments=files.arguments,
            environment=self._beside_a_server(self.settings.spark_conf),
            inherited=files.inherited,
        )

    def warm(self, files: JobFiles, taken: Taken, about: str) -> Driver:
        """A driver in the warm Spark of this host, which has the settings already. `about`: its job, for messages."""
        from tidemark.hooks.warm_driver import WarmDriver

        driver = WarmDriver(
            taken,
            about=about,
            spark_log=files.spark_log,
            arguments=files.arguments,
            environment=self._beside_a_server({}),
            inherited=files.inherited,
        )
        files.keep_session(SessionOfJob(driver.session_id, taken.server.directory))
        return driver

    def to_leave(self, url: str) -> dict[str, str]:
        """The environment in which the session of `url` is left."""
        from tidemark.hooks.connect_driver import SERVER_URL

        return {**self._beside_a_server({}), SERVER_URL: url}

    def warm_spark(self) -> WarmSpark:
        """The warm Spark of this host for these jobs, whether or not it runs."""
        from tidemark.hooks.warm_spark import warm_spark

        known = {name: value for name, value in self._for_python().items() if name not in (KILL_AT, KILL_ONCE)}
        return warm_spark(
            self.settings, self.connection, conf=self._conf(), packages=self._all_packages(), environment=known
        )

    def known(self) -> DriverEnvironment:
        """The part of the worker's environment that the driver gets."""
        return driver_environment(os.environ, self.settings.driver_environment)

    def environment(self) -> dict[str, str]:
        """The driver's whole environment. Only it has secrets."""
        environment = self._for_python()
        if self.python_path:
            more = [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
            environment["PYTHONPATH"] = os.pathsep.join((*self.python_path, *more))
        return {**environment, **self._connections()}

    def _connections(self) -> dict[str, str]:
        """The variables of lake and source, which have secrets."""
        found = {}
        if self.settings.storage_options:
            found[STORAGE_OPTIONS] = json.dumps(dict(self.settings.storage_options))
        if self.source is not None:
            found[SOURCE if isinstance(self.source, SourceAddress) else SOURCE_CONNECTION] = to_json(self.source)
        return found

    def _of_the_job(self) -> dict[str, str]:
        """The variables that a driver on a node gets: those that the connection names, and not the others of this
        host.
        """
        names = (*self.settings.driver_environment, KILL_AT, KILL_ONCE)
        beginnings = tuple(one[:-1] for one in names if one.endswith("*"))
        passed = self.known().passed.items()
        wanted = {name: value for name, value in passed if name in names or name.startswith(beginnings)}
        return {**wanted, **self._connections()}

    def _for_python(self) -> dict[str, str]:
        """Worker and driver use one Python; pip's own spark-submit is last on the PATH."""
        known = self.known().passed
        return {
            **known,
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PATH": os.pathsep.join((known.get("PATH", os.defpath), sysconfig.get_path("scripts"))),
        }

    def _beside_a_server(self, conf: Mapping[str, str]) -> dict[str, str]:
        from tidemark.hooks.connect_driver import SPARK_SETTINGS

        environment = self.environment()
        ours = str(Path(tidemark.__file__).parent.parent)
        environment["PYTHONPATH"] = os.pathsep.join(entry for entry in (environment.get("PYTHONPATH"), ours) if entry)
        environment[SPARK_SETTINGS] = json.dumps(dict(conf))
        return environment

    def _conf(self) -> dict[str, str]:
        from tidemark.hooks._secrets import SECRET_SPARK_SETTINGS
        from tidemark.hooks._submission import cluster_settings, master_of

        local = master_of(self.connection).startswith("local")
        return {
            **JOB_SETTINGS,
            "spark.redaction.regex": SECRET_SPARK_SETTINGS,
            **(LOCAL_SETTINGS if local else cluster_settings(self.connection)),
            **DELTA_SETTINGS,
            **self.settings.spark_conf,
        }

    def _all_packages(self) -> Sequence[str]:
        named = (self.settings.spark_packages or "").split(",")
        return tuple(name.strip() for name in (*named, *self.packages) if name.strip())


def _in_one_word(environment: Mapping[str, str]) -> str:
    """Variables as one word: YARN writes the environment of a container into a shell script, and escapes no quote."""
    return base64.b64encode(json.dumps(dict(environment)).encode()).decode()
