"""`spark-submit [--py-files tidemark.zip] …/jobs/__main__.py SPEC-PATH`: one job, its result in a file.

Without spark-submit (`python …/jobs/__main__.py`) the job uses the session of Spark Connect in the environment. It
exits with 0 if the job succeeded, and with 1 if the result has an error. It exits with 3 and no result if a server may
still run the job.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from tidemark.errors import JobCancelled, JobDeadlineExceeded, JobError
from tidemark.failpoints import failpoint
from tidemark.jobs.files import has_lost_its_worker, read_spec, write_result
from tidemark.jobs.progress import print_line
from tidemark.jobs.remote_session import SERVER_URL, leave, remote_of_environment
from tidemark.jobs.run import run
from tidemark.model.codec import from_json
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.source_address import SourceAddress
from tidemark.model.source_connection import SourceConnection

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG_LEVEL = "spark.log.level"
STORAGE_OPTIONS = "TIDEMARK_STORAGE_OPTIONS"
SOURCE = "TIDEMARK_SOURCE"
SOURCE_CONNECTION = "TIDEMARK_SOURCE_CONNECTION"
SECRETS = "secret.properties"  # if the system has no files in memory
UNSURE = 3
SECONDS_TO_LEAVE = 3.0  # at most: the worker kills five seconds after its request


def main(arguments: list[str]) -> int:
    """The exit code, after the job has run and its result is written. The file of secrets is deleted first: Spark has
    read it already.
    """
    (spec_path,) = arguments
    Path(spec_path).with_name(SECRETS).unlink(missing_ok=True)
    spec = read_spec(spec_path)
    options = json.loads(os.environ.get(STORAGE_OPTIONS) or "{}")
    return _remote_job(spec, options, spec_path) if SERVER_URL in os.environ else _local_job(spec, options)


def _local_job(spec: JobSpec, options: dict[str, str]) -> int:
    spark = _quiet_session(spec)
    result = run(spark, spec, options=options, source=_source(), end=_ender(spark, spec))
    code = _answer(spec, replace(result, application=spark.sparkContext.applicationId))
    spark.stop()
    return code


def _remote_job(spec: JobSpec, options: dict[str, str], spec_path: str) -> int:
    """The job of a process that nothing ends with its worker. It may hold a slot of a warm Spark, so it ends itself
    when the worker is dead.
    """
    try:
        spark = remote_of_environment()
    except JobError as error:
        return _answer(spec, JobResult(error=error.to_record()))
    end = _remote_ender(spark, spec)
    signal.signal(signal.SIGTERM, lambda *_: end(_reason_to_stop(spec)))
    is_left = partial(has_lost_its_worker, spec_path)
    result = run(spark, spec, options=options, source=_source(), end=end, is_left=is_left)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if not leave(spark) and result.error is not None:
        return UNSURE
    return _answer(spec, result)


def _source() -> SourceAddress | SourceConnection | None:
    """The source database or connection in the environment, if the job reads one."""
    if text := os.environ.get(SOURCE):
        return from_json(SourceAddress, text)
    text = os.environ.get(SOURCE_CONNECTION)
    return None if text is None else from_json(SourceConnection, text)


def _answer(spec: JobSpec, result: JobResult) -> int:
    write_result(spec.result_uri, result)
    failpoint("result.written")
    if result.error is not None:
        print_line(f"{result.error.error}: {result.error.message}")
    return 0 if result.error is None else 1


def _quiet_session(spec: JobSpec) -> SparkSession:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(f"tidemark {spec.kind} {spec.key}")
    if not SparkConf().contains(LOG_LEVEL):
        builder = builder.config(LOG_LEVEL, "WARN")
    return builder.getOrCreate()


def _ender(spark: SparkSession, spec: JobSpec) -> Callable[[JobError], None]:
    """A function that logs the reason and ends JVM and process, so that nothing writes after the deadline (step 9)."""
    jvm = os.getppid() if "PYSPARK_GATEWAY_PORT" in os.environ else None  # spark-submit runs Python as its child

    def end(reason: JobError) -> None:
        try:
            write_result(spec.result_uri, JobResult(error=reason.to_record()))
        finally:  # also without an answer of the lake
            _end_process(spark, jvm)

    return end


def _end_process(spark: SparkSession, jvm: int | None) -> NoReturn:
    try:
        if jvm is not None:
            os.kill(jvm, signal.SIGKILL)
        else:
            gateway: Any = spark.sparkContext._jvm
            gateway.java.lang.Runtime.getRuntime().halt(1)
    finally:
        os._exit(1)


def _remote_ender(spark: SparkSession, spec: JobSpec) -> Callable[[JobError], None]:
    """A function that leaves the session and ends the process. It writes a result only if the server has ended, too."""

    def end(reason: JobError) -> None:
        ended = False
        try:
            ended = leave(spark, SECONDS_TO_LEAVE)
            if ended:
                write_result(spec.result_uri, JobResult(error=reason.to_record()))
        finally:
            os._exit(1 if ended else UNSURE)

    return end


def _reason_to_stop(spec: JobSpec) -> JobError:
    key = str(spec.key)
    late = datetime.now(UTC) >= spec.deadline
    return JobDeadlineExceeded(key=key, deadline=spec.deadline) if late else JobCancelled(key=key)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
