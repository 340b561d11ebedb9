"""The Spark provider's submit hook, made strict about its connection and quiet in the task log."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowException

from tidemark.errors import NotYetSupported
from tidemark.hooks._driver_log import TAIL_LINES, follow
from tidemark.hooks.connect_driver import is_connect

__all__ = ["Submission", "spark_connection"]

_INSTEAD = "Use a local master, a standalone master in client mode, or Spark Connect."


def spark_connection(conn_id: str | None, master: str) -> Connection:
    """The Spark connection `conn_id`, or one to `master` if None.

    Raises AirflowNotFoundException for an unknown id (the submit hook would take it for YARN), NotYetSupported for a
    master or deploy mode other than local, standalone client mode and Spark Connect.
    """
    if conn_id is None:
        connection = Connection(conn_id="tidemark_spark", conn_type="spark", host=master)
    else:
        connection = BaseHook.get_connection(conn_id)
    if is_connect(connection):
        return connection
    master = master_of(connection)
    if not (master == "local" or master.startswith(("local[", "spark://"))):
        raise NotYetSupported(feature=f"Spark master {master!r}", instead=_INSTEAD)
    if (connection.extra_dejson.get("deploy-mode") or "client") != "client":
        raise NotYetSupported(feature="Spark deploy mode 'cluster'", instead=_INSTEAD)
    return connection


def master_of(connection: Connection) -> str:
    """The master as the submit hook will understand the connection."""
    host = connection.host or ""
    if connection.conn_type == "spark" and host and ("://" in host or not connection.port):
        return host
    return f"{connection.conn_type}://{host}"


class Submission(SparkSubmitHook):
    """One `spark-submit` in a process group of its own.

    Lines of the job that begin with `tidemark: ` go to the task log; everything goes to `spark_log`.
    """

    def __init__(self, connection: Connection, *, spark_log: Path, **arguments: Any) -> None:
        self._given = connection
        self.spark_log = spark_log
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        super().__init__(conn_id=connection.conn_id, **arguments)

    def get_connection(self, conn_id: str) -> Connection:  # type: ignore[override]
        """The connection that was given; it has been looked up and checked before."""
        return self._given

    @property
    def process_id(self) -> int | None:
        """The leader of the process group; None before the start."""
        return self._submit_sp.pid if self._submit_sp is not None else None

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._submit_sp.poll() if self._submit_sp is not None else None

    def _process_spark_submit_log(self, itr: Iterator[Any]) -> None:
        follow(itr, self.spark_log, self.tail, partial(self.log.info, "%s"))

    def submit(self, application: str = "", **kwargs: Any) -> None:
        """Run `application` to its end, whatever its exit code: it is judged together with what the job wrote."""
        with contextlib.suppress(AirflowException):
            super().submit(application, start_new_session=True, **kwargs)
