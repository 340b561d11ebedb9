"""`spark-submit [--py-files tidemark.zip] …/jobs/__main__.py SPEC-PATH`: one job, its result in a file.

Ends with 0 when the job did what was asked, with 1 when the result holds an error.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tidemark.errors import JobError
from tidemark.jobs.files import read_spec, write_result
from tidemark.jobs.progress import print_line
from tidemark.jobs.run import run
from tidemark.kill_points import reach
from tidemark.model.jobs import JobResult, JobSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG_LEVEL = "spark.log.level"
STORAGE_OPTIONS = "TIDEMARK_STORAGE_OPTIONS"


def main(arguments: list[str]) -> int:
    """Read the spec, run the job, write the result."""
    (spec_path,) = arguments
    spec = read_spec(spec_path)
    options = json.loads(os.environ.get(STORAGE_OPTIONS) or "{}")
    spark = _quiet_session(spec)
    result = run(spark, spec, options=options, end=_ender(spark, spec))
    write_result(spec.result_uri, result)
    reach("result.written")
    if result.error is not None:
        print_line(f"{result.error.error}: {result.error.message}")
    spark.stop()
    return 0 if result.error is None else 1


def _quiet_session(spec: JobSpec) -> SparkSession:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(f"tidemark {spec.kind.value} {spec.key}")
    if not SparkConf().contains(LOG_LEVEL):
        builder = builder.config(LOG_LEVEL, "WARN")
    return builder.getOrCreate()


def _ender(spark: SparkSession, spec: JobSpec) -> Callable[[JobError], None]:
    """Say why, then end the JVM and this process: nothing may write after the deadline (step 9)."""
    jvm = os.getppid() if "PYSPARK_GATEWAY_PORT" in os.environ else None  # spark-submit runs Python as its child

    def end(reason: JobError) -> None:
        write_result(spec.result_uri, JobResult(error=reason.to_record()))
        if jvm is not None:
            os.kill(jvm, signal.SIGKILL)
        else:
            gateway: Any = spark.sparkContext._jvm
            gateway.java.lang.Runtime.getRuntime().halt(1)
        os._exit(1)

    return end


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
