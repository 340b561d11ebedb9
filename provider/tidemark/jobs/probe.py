"""The PROBE job: worker and Spark each write a small file in the lake, and each reads the other's."""

from __future__ import annotations

from tidemark.errors import LakeNotShared
from tidemark.jobs.context import JobContext
from tidemark.lake.storage import Storage
from tidemark.model.probe import ProbeReport, ProbeRequest

__all__ = ["probe"]

FROM_WORKER = "from_worker.txt"
FROM_SPARK = "from_spark"


def probe(job: JobContext, request: ProbeRequest) -> ProbeReport:
    """Spark's version, after each side has read the other's file. Idempotent: no file is left.

    Raises LakeNotShared with the file that one side wrote and the other could not read.
    """
    with job.new_workspace("probe") as workspace:
        directory = workspace.new_directory()
        workspace.write(f"{directory}/{FROM_WORKER}", directory.encode())
        _spark_reads(job, f"{directory}/{FROM_WORKER}", directory)
        _spark_writes(job, f"{directory}/{FROM_SPARK}", directory)
        _worker_reads(job, f"{directory}/{FROM_SPARK}", directory)
    return ProbeReport(job.session.version)


def _spark_reads(job: JobContext, file: str, text: str) -> None:
    from pyspark.errors import PySparkException

    try:
        found = [row[0] for row in job.session.read.text(file).collect()]
    except PySparkException as error:
        raise LakeNotShared(problem=f"Spark cannot read {file}, which the worker wrote: {_first(error)}") from error
    if found != [text]:
        raise LakeNotShared(problem=f"Spark reads something else in {file} than the worker wrote")


def _spark_writes(job: JobContext, directory: str, text: str) -> None:
    from pyspark.errors import PySparkException

    try:
        job.session.createDataFrame([(text,)], "value string").coalesce(1).write.text(directory)
    except PySparkException as error:
        raise LakeNotShared(problem=f"Spark cannot write to {directory}: {_first(error)}") from error


def _worker_reads(job: JobContext, directory: str, text: str) -> None:
    storage = Storage(directory, job.options)
    try:
        files = [name for name in storage.names() if name.startswith("part-")]
        found = [storage.read_bytes(name).decode().strip() for name in files]
    except OSError as error:
        raise LakeNotShared(problem=f"the worker cannot read {directory}, which Spark wrote: {error}") from error
    if found != [text]:
        raise LakeNotShared(problem=f"the worker reads something else in {directory} than Spark wrote")


def _first(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
