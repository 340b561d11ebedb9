"""The Spark provider's submit hook, made strict about its connection and quiet in the task log."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowException

from tidemark.errors import InvalidArgument, NotYetSupported, SparkMasterUnfit
from tidemark.hooks._driver_log import TAIL_LINES, follow
from tidemark.hooks._files import secret_file
from tidemark.hooks._job_files import SECRETS
from tidemark.hooks._secrets import is_secret_setting, mask
from tidemark.hooks.connect_driver import is_connect

__all__ = [
    "ClusterSubmission",
    "Submission",
    "cluster_settings",
    "has_executors",
    "is_cluster_mode",
    "master_of",
    "require_client_mode",
    "spark_connection",
]

_CLUSTER_MODE = (
    "Its driver would be on another host, and its end could not be confirmed. Leave out deploy-mode, or make "
    "it client: the driver runs beside the task, its executors on the cluster. On YARN, deploy-mode of the Spark "
    "connection may be cluster."
)
_TYPES = ("spark", "spark_connect")
_MASTERS = "Use local, spark://…, yarn, k8s://…, or Spark Connect."


def spark_connection(conn_id: str | None, master: str) -> Connection:
    """The Spark connection `conn_id`, or one to `master` if None. Errors name the connection, or the master's origin.

    Raises AirflowNotFoundException for an unknown id (the submit hook would use YARN), and InvalidArgument for a
    connection of another type. Raises NotYetSupported for deploy mode cluster without YARN, and for a master other
    than local, standalone, YARN, Kubernetes and Spark Connect. Raises SparkMasterUnfit if this host cannot reach YARN
    or Kubernetes.
    """
    if conn_id is None:
        connection = Connection(conn_id="tidemark_spark", conn_type="spark", host=master)
    else:
        connection = BaseHook.get_connection(conn_id)
        _refuse_other_type(connection)
        mask(connection.password or "")  # also its form in URLs
    if is_connect(connection):
        return connection
    master = master_of(connection)
    said = f"{master!r} ({_origin_of(conn_id)})"
    if not (master in ("local", "yarn") or master.startswith(("local[", "spark://", "k8s://"))):
        raise NotYetSupported(feature=f"Spark master {said}", instead=_MASTERS)
    if not is_cluster_mode(connection):
        require_client_mode(connection.extra_dejson.get("deploy-mode"))
    _require_way_to(master, said)
    return connection


def is_cluster_mode(connection: Connection) -> bool:
    """Whether the drivers of the connection's jobs run in YARN."""
    in_cluster = connection.extra_dejson.get("deploy-mode") == "cluster"
    return in_cluster and not is_connect(connection) and master_of(connection) == "yarn"


def has_executors(connection: Connection) -> bool:
    """Whether a job of the connection is an application with executors of its own."""
    master = master_of(connection)
    return not is_connect(connection) and (_of_a_cluster_manager(master) or master.startswith("spark://"))


def require_client_mode(deploy_mode: str | None) -> None:
    """Nothing, or NotYetSupported for any mode but `client`, the default."""
    if (deploy_mode or "client") != "client":
        raise NotYetSupported(feature=f"Spark deploy mode {deploy_mode!r}", instead=_CLUSTER_MODE)


def _refuse_other_type(connection: Connection) -> None:
    """Nothing, or InvalidArgument if the connection is not Spark's: its host would be used as a master."""
    if connection.conn_type not in _TYPES:
        problem = f"the connection has the type {connection.conn_type!r}; give one of {' or '.join(_TYPES)}"
        raise InvalidArgument(argument="spark_conn_id", value=connection.conn_id, problem=problem)


def _origin_of(conn_id: str | None) -> str:
    """The origin of the master, in words."""
    if conn_id is not None:
        return f"from the connection {conn_id!r}"
    for variable in ("TIDEMARK_SPARK_MASTER", "AIRFLOW__TIDEMARK__SPARK_MASTER"):
        if os.environ.get(variable):
            return f"from the environment variable {variable}"
    return "from Airflow's configuration, [tidemark] spark_master, or the default"


def _require_way_to(master: str, shown_master: str) -> None:
    if master == "yarn" and not (os.environ.get("HADOOP_CONF_DIR") or os.environ.get("YARN_CONF_DIR")):
        problem = "this worker has neither HADOOP_CONF_DIR nor YARN_CONF_DIR. Set one, so that it finds the cluster"
        raise SparkMasterUnfit(master=shown_master, problem=problem)
    if master.startswith("k8s://") and not _is_installed("airflow.providers.cncf.kubernetes.kube_client"):
        problem = "the Spark provider's hook needs Airflow's for Kubernetes (pip install "
        raise SparkMasterUnfit(master=shown_master, problem=f"{problem}'airflow-provider-tidemark[kubernetes]')")


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # not even its parents
        return False


def cluster_settings(connection: Connection) -> Mapping[str, str]:
    """The default settings of jobs on YARN and Kubernetes. An executor's Python is that of its node or image, and so is
    that of a driver in the cluster. Executors run no Python but users' functions. Empty for other masters.
    """
    if not _of_a_cluster_manager(master_of(connection)):
        return {}
    driver = "python3" if is_cluster_mode(connection) else sys.executable
    return {"spark.pyspark.driver.python": driver, "spark.pyspark.python": "python3"}


def _of_a_cluster_manager(master: str) -> bool:
    return master == "yarn" or master.startswith("k8s://")


def master_of(connection: Connection) -> str:
    """The master that the submit hook reads from the connection."""
    host = connection.host or ""
    if connection.conn_type == "spark" and host and ("://" in host or not connection.port):
        return host
    return f"{connection.conn_type}://{host}"


class Submission(SparkSubmitHook):
    """One `spark-submit` in a process group of its own.

    Lines of the job that begin with `tidemark: ` go to the task log; everything goes to `spark_log`. Settings in `conf`
    with a secret name are passed by a file in memory, or by a private file beside `spark_log`. The file is deleted at
    the driver's end. Other settings are visible in process lists. `environment` is all that spark-submit and a driver
    in client mode get. The hook itself would turn it into arguments on YARN and Kubernetes, and elsewhere add it to the
    worker's. `inherited`: descriptors that live as long as the driver.
    """

    _deploy_mode_on_clusters = "client"

    def __init__(
        self,
        connection: Connection,
        *,
        spark_log: Path,
        conf: Mapping[str, str],
        environment: Mapping[str, str],
        inherited: Sequence[int] = (),
        **arguments: Any,
    ) -> None:
        require_client_mode(conf.get("spark.submit.deployMode"))
        self._given = connection
        self._secret_settings = {name: value for name, value in conf.items() if is_secret_setting(name)}
        self.spark_log = spark_log
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        super().__init__(
            conn_id=connection.conn_id,
            conf={name: value for name, value in conf.items() if name not in self._secret_settings},
            deploy_mode=self._deploy_mode_on_clusters if _of_a_cluster_manager(master_of(connection)) else None,
            **arguments,
        )
        self._environment = dict(environment)
        self._inherited = tuple(inherited)

    def get_connection(self, conn_id: str) -> Connection:  # type: ignore[override]
        """The given connection, which is already found and checked."""
        return self._given

    @property
    def process_id(self) -> int | None:
        """The leader of the process group; None before the start."""
        return self._submit_sp.pid if self._submit_sp is not None else None

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._submit_sp.poll() if self._submit_sp is not None else None

    def _process_spark_submit_log(self, itr: Iterator[Any]) -> None:
        follow(itr, self.spark_log, self.tail, partial(self.log.info, "%s"))

    def submit(self, application: str = "", **kwargs: Any) -> None:
        """Runs `application` to its end. Its exit code is judged together with the job's result."""
        with self._secrets_at_hand() as read_from, contextlib.suppress(AirflowException):
            inherited = (*self._inherited, *read_from)
            super().submit(application, start_new_session=True, env=self._environment, pass_fds=inherited, **kwargs)

    @contextlib.contextmanager
    def started(self, application: str, *, cwd: str) -> Iterator[subprocess.Popen[bytes]]:
        """Starts `application` and does not wait for it. All that it prints is appended to `spark_log`, unmasked. The
        context must not be left before spark-submit has read its settings.
        """
        with self._secrets_at_hand() as read_from, self.spark_log.open("ab") as output:
            yield subprocess.Popen(
                self._build_spark_submit_command(application),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=self._environment,
                pass_fds=(*self._inherited, *read_from),
                start_new_session=True,
            )

    def _build_spark_common_args(self) -> list[str]:
        """The arguments, by which a file of properties is added to Spark's own defaults and does not replace them."""
        arguments: list[str] = super()._build_spark_common_args()
        return [*arguments, "--load-spark-defaults"] if self._secret_settings else arguments

    @contextlib.contextmanager
    def _secrets_at_hand(self) -> Iterator[tuple[int, ...]]:
        """The descriptors that spark-submit must inherit."""
        if not self._secret_settings:
            yield ()
            return
        text = "".join(f"{name}={_escaped(value)}\n" for name, value in self._secret_settings.items())
        with secret_file(self.spark_log.with_name(SECRETS), text) as (self._properties_file, read_from):
            yield read_from


class ClusterSubmission(Submission):
    """A `spark-submit` that hands its driver to YARN, and ends before the driver does."""

    _deploy_mode_on_clusters = "cluster"


def _escaped(value: str) -> str:
    """The value in the form that java.util.Properties reads."""
    for plain, written in (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"), ("\f", "\\f")):
        value = value.replace(plain, written)
    return f"\\{value}" if value.startswith(" ") else value
