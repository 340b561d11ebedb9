"""One attempt of a task on a real YARN: `yarn_worker.py RUN`. It works by the hook, as an operator does.

It says `waiting for APPLICATION` once YARN has the driver, and ends with 0 if the window is delivered. SIGTERM ends it
as Airflow does: by the cancel of the job.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType


def main(run: str) -> int:
    from tidemark.errors import TidemarkError
    from tidemark.hooks.cluster_runtime import on_its_cluster
    from tidemark.hooks.spark_job import SparkJob
    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.model.statements import PlannedWrite, TransactionKey, WriteAs
    from tidemark.streams.worker.consume import consume

    hook = TidemarkHook()
    job = SparkJob(hook.settings)
    job.require_ready()

    def end(number: int, frame: FrameType | None) -> None:
        job.cancel()

    signal.signal(signal.SIGTERM, end)
    say = lambda application: print(f"waiting for {application.id}", flush=True)  # noqa: E731
    runtime = on_its_cluster(hook.runtime(job.run), job, told=say)
    writes = [
        PlannedWrite(WriteAs.MERGE, hook.table_uri("c.mirror"), source="s", keys=("id",)),
        PlannedWrite(WriteAs.APPEND, hook.table_uri("c.history"), source="s"),
    ]
    try:
        consume(runtime, key=TransactionKey("d", run, "t"), streams=("s",), writes=writes, owner="worker")
    except TidemarkError as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
