"""One transaction by the worker's own steps, with a job of the hook's Spark.

`python -m tests.airflow.consuming RUN STREAM APPENDED MERGED` is one that can be killed: two targets, by the key `id`.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from tidemark.hooks.spark_job import SparkJob
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.model.statements import TransactionKey
from tidemark.operators._plans import WriteRequest, planned_writes
from tidemark.streams.worker.consume import consume
from tidemark.streams.worker.runtime import Runtime

__all__ = ["FUNCTIONS", "consume_once"]

FUNCTIONS = str(Path(__file__).parent)  # where the modules of users' functions are


def consume_once(
    hook: TidemarkHook, stream: str, *asked: WriteRequest, job: SparkJob | None = None, run: str = "run"
) -> None:
    """One transaction of the key that is named like the stream, in a run."""
    requests = [replace(request, streams=(stream,)) for request in asked]
    runner = job or SparkJob(hook.settings, python_path=(FUNCTIONS,))
    consume(
        Runtime(hook.open_store(), run=runner.run, paths=hook.job_paths(), tables=hook.open_table),
        key=TransactionKey("test", run, stream),
        streams=(stream,),
        writes=[write for request in requests for write in planned_writes(request, hook.table_uri)],
        owner=f"test@here:{os.getpid()}",
    )


if __name__ == "__main__":
    run, stream, appended, merged = sys.argv[1:]
    to_append = WriteRequest((), (appended,), write_as="append")
    to_merge = WriteRequest((), (merged,), write_as="merge", keys=("id",))
    consume_once(TidemarkHook(), stream, to_append, to_merge, run=run)
