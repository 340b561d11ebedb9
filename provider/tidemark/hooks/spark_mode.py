"""How jobs run on Spark: in the warm Spark of the host, by spark-submit, or in a Connect server elsewhere."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tidemark.errors import InvalidArgument
from tidemark.hooks._spark_modes import SparkMode

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from tidemark.hooks.settings import TidemarkSettings

__all__ = ["SparkMode", "mode_of", "require_submitted"]

_INSTEAD = {
    SparkMode.WARM: "jobs share the warm Spark of this host, which runs in one process. Set spark_mode to submit, and "
    "name a Spark connection to a cluster",
    SparkMode.CONNECT: "jobs run in a Spark Connect server, which decides on its executors. Set dynamic allocation "
    "there, or name a Spark connection to a cluster",
}

log = logging.getLogger(__name__)


def mode_of(settings: TidemarkSettings, connection: Connection) -> SparkMode:
    """The mode of the Tidemark connection, else that of Airflow's configuration, else the one that fits the Spark
    connection.

    Connect fits a connection to a Connect server. Warm fits a local master, on a worker that outlives its tasks and has
    the Connect client. Submit fits the rest. Raises InvalidArgument if mode and connection contradict each other.
    """
    from tidemark.hooks._submission import master_of
    from tidemark.hooks.connect_driver import is_connect, missing_client

    at_a_server = is_connect(connection)
    named = settings.spark_mode or (None if at_a_server else settings.usual_spark_mode)
    if named is not None:
        if at_a_server is not (named is SparkMode.CONNECT):
            raise _contradiction(named, connection)
        return named
    if at_a_server:
        return SparkMode.CONNECT
    if not (master_of(connection).startswith("local") and settings.worker_stays):
        return SparkMode.SUBMIT
    if missing := missing_client():
        log.info("Jobs are submitted: the warm Spark of this host needs the packages %s.", ", ".join(missing))
        return SparkMode.SUBMIT
    return SparkMode.WARM


def require_submitted(mode: SparkMode, factor: int) -> None:
    """Nothing, or InvalidArgument for a job that is not an application of its own."""
    if mode in _INSTEAD:
        argument = "query_acceleration_max_scale_factor"
        raise InvalidArgument(argument=argument, value=factor, problem=_INSTEAD[mode])


def _contradiction(named: SparkMode, connection: Connection) -> InvalidArgument:
    server = "a Spark Connect server" if named is not SparkMode.CONNECT else "no Spark Connect server"
    return InvalidArgument(
        argument="spark_mode",
        value=named.value,
        problem=f"the Spark connection {connection.conn_id!r} names {server}. Change one of the two, or leave "
        "spark_mode empty: it follows the Spark connection",
    )
