"""The session behind Spark Connect that a job works in: opened, checked, and left so that nothing of it runs on.

`python …/jobs/remote_session.py` leaves the session that the environment names, for a job that could not do so itself.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tidemark.errors import SparkServerUnfit, SparkServerUnreachable
from tidemark.jobs.progress import print_line
from tidemark.model.spark import DELTA_SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SERVER_URL", "SPARK_SETTINGS", "leave", "open_remote", "remote_of_environment"]

SERVER_URL = "SPARK_REMOTE"  # pyspark's own name; it may hold a token, so it is in no argument and in no message
SPARK_SETTINGS = "TIDEMARK_SPARK_SETTINGS"
SECONDS_TO_LEAVE = 60.0

_FIRST_TRIES = 3  # about a second: whether a server is there
_TRIES = 8  # about a minute: a network that breaks for a moment
_DELTA = ("spark.sql.extensions", "spark.sql.catalog.spark_catalog")
_HADOOP = "spark.hadoop."
_HOW_TO = "start it with --packages, spark.sql.extensions and spark.sql.catalog.spark_catalog of Delta Lake"
_NOT_THERE = ("INVALID_HANDLE.SESSION_CLOSED", "INVALID_HANDLE.SESSION_NOT_FOUND", "INVALID_HANDLE.SESSION_CHANGED")


def remote_of_environment() -> SparkSession:
    """`open_remote` with what the worker has put into the environment."""
    return open_remote(os.environ[SERVER_URL], json.loads(os.environ.get(SPARK_SETTINGS) or "{}"))


def open_remote(url: str, settings: Mapping[str, str]) -> SparkSession:
    """The session that `url` names, with `settings`; those that only a server's start can set are named and left.

    Raises SparkServerUnreachable after a second or two, SparkServerUnfit for a server without Delta Lake.
    """
    from pyspark.errors import PySparkException

    spark = _connected(url)
    _try_for_a_moment(spark)
    try:
        lacking = [name for name in _DELTA if DELTA_SETTINGS[name] not in (spark.conf.get(name, None) or "")]
    except PySparkException as error:
        raise SparkServerUnreachable(server=_shown(url), problem=_problem(error)) from error
    if lacking:
        raise SparkServerUnfit(server=_shown(url), problem=f"it lacks Delta Lake ({', '.join(lacking)}); {_HOW_TO}")
    _try_longer(spark)
    _apply(spark, {name: value for name, value in {**DELTA_SETTINGS, **settings}.items() if name not in _DELTA})
    return spark


def leave(spark: SparkSession, seconds: float = SECONDS_TO_LEAVE) -> bool:
    """End what runs in the session, wait until it has ended, release it; whether it is sure that nothing runs on.

    A released session takes no more work, so an order that is still on its way does nothing. A second run is harmless.
    """
    from pyspark.errors import PySparkException

    remote: Any = spark
    until = time.monotonic() + seconds
    try:
        remote.interruptAll()
        while _running(remote):
            if time.monotonic() > until:
                return False
            time.sleep(0.1)
        remote.client.release_session()
    except PySparkException as error:
        return any(condition in str(error) for condition in _NOT_THERE)
    return True


def _connected(url: str) -> SparkSession:
    """Nothing is sent yet."""
    import delta.connect  # noqa: F401 - Delta's conflicts arrive as its own exceptions, as without Connect
    from pyspark.sql import SparkSession

    return SparkSession.builder.remote(url).getOrCreate()


def _running(remote: Any) -> bool:
    statuses = remote.client._get_operation_statuses().operation_statuses
    return any(
        status.state in (status.OPERATION_STATE_RUNNING, status.OPERATION_STATE_TERMINATING) for status in statuses
    )


def _apply(spark: SparkSession, settings: Mapping[str, str]) -> None:
    from pyspark.errors import AnalysisException

    left = []
    for name, value in settings.items():
        try:
            spark.conf.set(name.removeprefix(_HADOOP), value)  # a session has Hadoop's settings by their own names
        except AnalysisException:
            left.append(name)
    if left:
        print_line(f"left as the Spark Connect server has them: {', '.join(left)}")


def _try_for_a_moment(spark: SparkSession) -> None:
    _try(spark, _FIRST_TRIES)


def _try_longer(spark: SparkSession) -> None:
    _try(spark, _TRIES)


def _try(spark: SparkSession, times: int) -> None:
    from pyspark.sql.connect.client.retries import DefaultPolicy

    remote: Any = spark
    remote.client.set_retry_policies([DefaultPolicy(max_retries=times, max_backoff=15_000)])


def _shown(url: str) -> str:
    """Without token and other parameters."""
    return f"sc://{urlsplit(url).netloc}"


def _problem(error: Exception) -> str:
    """What gRPC says, without the stack that it says it with."""
    found = re.search(r'details = "(.*?)"\n', str(error))
    return found.group(1) if found else str(error).splitlines()[0]


def main() -> int:
    """0 when nothing of the session runs on."""
    spark = _connected(os.environ[SERVER_URL])
    _try_for_a_moment(spark)
    return 0 if leave(spark) else 1


if __name__ == "__main__":
    sys.exit(main())
