"""A job's session behind Spark Connect: opening it, checking it, and leaving it with nothing still running.

`python …/jobs/remote_session.py` leaves the session in the environment, for a job that could not do so itself.
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

SERVER_URL = "SPARK_REMOTE"  # pyspark's own name; the value may have a token, so no argument and no message has it
SPARK_SETTINGS = "TIDEMARK_SPARK_SETTINGS"
SECONDS_TO_LEAVE = 60.0

_FIRST_TRIES = 3  # about a second, to find out whether a server answers
_TRIES = 8  # about a minute, for short breaks of the network
_DELTA = ("spark.sql.extensions", "spark.sql.catalog.spark_catalog")
_HADOOP = "spark.hadoop."
_HOW_TO = "start it with --packages, spark.sql.extensions and spark.sql.catalog.spark_catalog of Delta Lake"
_NOT_THERE = ("INVALID_HANDLE.SESSION_CLOSED", "INVALID_HANDLE.SESSION_NOT_FOUND", "INVALID_HANDLE.SESSION_CHANGED")


def remote_of_environment() -> SparkSession:
    """The session that the environment names, by `open_remote`."""
    return open_remote(os.environ[SERVER_URL], json.loads(os.environ.get(SPARK_SETTINGS) or "{}"))


def open_remote(url: str, settings: Mapping[str, str]) -> SparkSession:
    """The session that `url` names, with `settings`. Settings that only a server's start can set are logged and
    skipped.

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
    """Whether nothing of the session runs any more, after its work was cancelled, has ended, and the session is
    released.

    A released session takes no more work, so a late request does nothing. Idempotent: a second run is harmless.
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
            remote.interruptAll()  # another thread's query may have arrived after the first
        remote.client.release_session()
    except PySparkException as error:
        return any(condition in str(error) for condition in _NOT_THERE)
    return True


def _connected(url: str) -> SparkSession:
    """A session for `url`. Nothing is sent yet."""
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
            spark.conf.set(name.removeprefix(_HADOOP), value)  # a session has Hadoop's settings under their own names
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
    """The URL without token and other parameters."""
    return f"sc://{urlsplit(url).netloc}"


def _problem(error: Exception) -> str:
    """The message of gRPC, without its stack."""
    found = re.search(r'details = "(.*?)"\n', str(error))
    return found.group(1) if found else str(error).splitlines()[0]


def main() -> int:
    """The exit code: 0 if nothing of the session runs any more."""
    spark = _connected(os.environ[SERVER_URL])
    _try_for_a_moment(spark)
    return 0 if leave(spark) else 1


if __name__ == "__main__":
    sys.exit(main())
