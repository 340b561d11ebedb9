"""The Spark provider's submit hook, made strict about its connection and quiet in the task log."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk import BaseHook, Connection

from tidemark.errors import NotYetSupported

__all__ = ["PROGRESS", "Submission", "spark_connection"]

PROGRESS = "tidemark: "
_TAIL_LINES = 25
_INSTEAD = "Use a local master, or a standalone master in client mode."


def spark_connection(conn_id: str | None, master: str) -> Connection:
    """The Spark connection `conn_id`, or one to `master` if None.

    Raises AirflowNotFoundException for an unknown id (the submit hook would take it for YARN), NotYetSupported for a
    master or deploy mode other than local and standalone client mode.
    """
    if conn_id is None:
        connection = Connection(conn_id="tidemark_spark", conn_type="spark", host=master)
    else:
        connection = BaseHook.get_connection(conn_id)
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
        self.tail: deque[str] = deque(maxlen=_TAIL_LINES)
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
        with self.spark_log.open("a", encoding="utf-8", errors="replace") as log:
            for line in itr:
                log.write(line)
                self.tail.append(line.rstrip())
                if line.startswith(PROGRESS):
                    log.flush()
                    self.log.info("%s", line.removeprefix(PROGRESS).rstrip())
