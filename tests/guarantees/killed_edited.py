"""One attempt of a task whose DAG may be edited: `killed_edited.py HOME FORM STORE TARGET SAID`.

It begins and submits by the hook, as an operator does. An attempt that is not killed says its form and the end of its
window in the file SAID, in place of a driver's work.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main(home: str, form: str, store: str, target: str, said: str) -> None:
    os.environ |= {"TIDEMARK_CONTROL_STORE": store, "TIDEMARK_LAKE_ROOT": home, "TIDEMARK_SPARK_MASTER": "local[1]"}
    from tests.guarantees.world import key_of
    from tidemark.failpoints import KILL_AT
    from tidemark.hooks.spark_job import SparkJob
    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.model.statements import PlannedWrite, WriteAs
    from tidemark.streams.worker.begin import begin
    from tidemark.streams.worker.outcomes import Opened
    from tidemark.streams.worker.submit import submit

    hook = TidemarkHook()
    runtime = hook.runtime(SparkJob(hook.settings).run)
    writes = [PlannedWrite(WriteAs(form), target, source="s", keys=("id",) if form == "merge" else ())]
    begun = begin(runtime, key=key_of("one"), streams=("s",), writes=writes, owner="worker")
    assert isinstance(begun, Opened), begun
    if os.environ.get(KILL_AT):
        submit(runtime, begun.transaction)
    (write,) = [statement.write for statement in begun.transaction.plan.statements]
    Path(said).write_text(f"{write.write_as.value} {begun.transaction.windows[0].end}", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
